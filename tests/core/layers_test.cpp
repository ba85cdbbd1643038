#include <functional>
#include <optional>
#include <tuple>

#include "gpipe/core/layer.h"
#include "tests/testing/check.h"

namespace gpipe {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

/// A network of one layer, run on `inputs`.
template <class... Parts>
Tensors run(const Tensors& inputs, Parts... parts) {
  Layers layers;
  layers.push_back("layer", std::move(parts)...);
  layers.build(0);
  return layers[0].forward(inputs);
}

at::Tensor ones() {
  return torch::ones({2, 4});
}

at::Tensor twice(const at::Tensor& x) {
  return x * 2;
}

TEST(LayersTest, TakesModulesHoldersAndPointers) {
  torch::nn::Linear linear(4, 3);
  EXPECT_EQ(run({ones()}, linear)[0].size(1), 3);
  EXPECT_EQ(run({ones()}, linear.ptr())[0].size(1), 3);
  EXPECT_EQ(run({ones()}, [] { return torch::nn::Linear(4, 5); })[0].size(1), 5);
  EXPECT_EQ(
      run({ones()}, [] { return std::make_shared<torch::nn::LinearImpl>(4, 6); })[0].size(1), 6);
}

TEST(LayersTest, TakesCallablesOfEveryKind) {
  const std::function<at::Tensor(const at::Tensor&)> function = twice;
  EXPECT_EQ(run({ones()}, &twice)[0].sum().item<double>(), 16);
  EXPECT_EQ(run({ones()}, function)[0].sum().item<double>(), 16);
  EXPECT_EQ(run({ones()}, [](at::Tensor x) { return x + 1; })[0].sum().item<double>(), 16);
  EXPECT_EQ(run({ones()}, [](const auto& x) { return x * 3; })[0].sum().item<double>(), 24);
  EXPECT_EQ(
      run({ones(), ones()}, [](auto x, auto y) { return x + y; })[0].sum().item<double>(), 16);
  int calls = 0;
  run({ones()}, [calls](at::Tensor x) mutable { return x * ++calls; });
}

TEST(LayersTest, CallsAModuleTheUsersWay) {
  torch::nn::LSTM lstm(4, 3);
  const auto outputs = run({torch::ones({5, 2, 4})}, lstm, [](auto& module, at::Tensor x) {
    return std::get<0>(module.forward(x));
  });
  ASSERT_EQ(outputs.size(), 1);
  EXPECT_EQ(outputs[0].sizes(), (std::vector<int64_t>{5, 2, 3}));
}

TEST(LayersTest, FlattensEveryKindOfResult) {
  const auto x = ones();
  EXPECT_EQ(run({x}, [](at::Tensor a) { return std::make_tuple(a, a + 1); }).size(), 2);
  EXPECT_EQ(run({x}, [](at::Tensor a) { return std::make_pair(a, Tensors{a, a}); }).size(), 3);
  EXPECT_EQ(run({x}, [](at::Tensor a) { return std::array<at::Tensor, 2>{a, a}; }).size(), 2);
  EXPECT_EQ(run({x}, [](at::Tensor a) { return Tensors{a, a, a}; }).size(), 3);
  const auto none = run({x}, [](at::Tensor) { return std::optional<at::Tensor>(); });
  ASSERT_EQ(none.size(), 1);
  EXPECT_FALSE(none[0].defined());
  const auto nested =
      run({x}, [](at::Tensor a) { return std::make_tuple(a, std::make_tuple(a + 1, a + 2)); });
  ASSERT_EQ(nested.size(), 3);
  EXPECT_EQ(nested[2].sum().item<double>(), 24);
}

struct ManyInputsImpl : torch::nn::Module {
  at::Tensor forward(
      const at::Tensor& a,
      std::optional<at::Tensor> b,
      const std::tuple<at::Tensor, at::Tensor>& pair,
      std::optional<at::Tensor> last = std::nullopt) {
    at::Tensor sum = a + std::get<0>(pair) * 10 + std::get<1>(pair) * 100;
    if (b)
      sum = sum + *b * 1000;
    return last ? sum + *last * 10000 : sum;
  }
};
TORCH_MODULE(ManyInputs);

TEST(LayersTest, SpreadsTensorsOverArgumentsOfEveryKind) {
  const at::Tensor one = torch::ones({1});
  EXPECT_EQ(run({one, one, one, one}, ManyInputs())[0].item<double>(), 1111);
  EXPECT_EQ(run({one, one, one, one, one}, ManyInputs())[0].item<double>(), 11111);
}

TEST(LayersTest, FillsDefaultArgumentsOfModules) {
  const auto x = torch::ones({5, 2, 4});
  EXPECT_EQ(run({x}, torch::nn::LSTM(4, 3)).size(), 3);
  const auto state = torch::zeros({1, 2, 3});
  EXPECT_EQ(run({x, state, state}, torch::nn::LSTM(4, 3)).size(), 3);
  EXPECT_EQ(run({x}, torch::nn::GRU(4, 3)).size(), 2);
  const auto attention = run({x, x, x}, torch::nn::MultiheadAttention(4, 2));
  ASSERT_EQ(attention.size(), 2);
  EXPECT_EQ(attention[0].sizes(), x.sizes());
  EXPECT_EQ(run({x}, torch::nn::TransformerEncoderLayer(4, 2))[0].sizes(), x.sizes());
  EXPECT_EQ(run({ones().unsqueeze(1)}, torch::nn::ConvTranspose1d(1, 2, 3)).size(), 1);
}

TEST(LayersTest, TakesSequentialWithModulesInside) {
  const torch::nn::Sequential inner(torch::nn::Linear(4, 3), torch::nn::ReLU());
  EXPECT_EQ(run({ones()}, inner)[0].size(1), 3);
  Layers layers;
  layers.push_back("inner", inner);
  layers.push_back("dropout", [] { return torch::nn::Sequential(torch::nn::Dropout(0.5)); });
  layers.build(0);
  EXPECT_EQ(layers[1].forward({ones()})[0].sizes(), ones().sizes());
}

TEST(LayersTest, RefusesMoreTensorsThanTheLayerTakes) {
  const auto x = ones();
  EXPECT_THAT(
      error_of([&] { run({x, x}, torch::nn::Linear(4, 3)); }),
      HasSubstr("takes 1 tensors and is given 2"));
  EXPECT_THAT(error_of([&] { run({x, x}, &twice); }), HasSubstr("takes 1 tensors and is given 2"));
  EXPECT_THAT(
      error_of([&] { run({x, x}, [](at::Tensor a) { return a; }); }),
      HasSubstr("takes 1 tensors and is given 2"));
  EXPECT_THAT(
      error_of([&] { run({x}, [](at::Tensor a, at::Tensor b) { return a + b; }); }),
      HasSubstr("takes 2 tensors and is given 1"));
  EXPECT_THAT(
      error_of([&] { run({x, x}, [](const auto& a) { return a; }); }),
      HasSubstr("cannot be called with 2 tensors"));
}

TEST(LayersTest, RefusesEmptyAndTakenNames) {
  Layers layers;
  layers.push_back("stem", &twice);
  EXPECT_THAT(
      error_of([&] { layers.push_back("", &twice); }), HasSubstr("layer 1 has an empty name"));
  EXPECT_THAT(
      error_of([&] { layers.push_back("stem", &twice); }), HasSubstr("the name 'stem' is taken"));
  EXPECT_EQ(layers.size(), 1);
}

TEST(LayersTest, RefusesLayersThatAreNothing) {
  Layers layers;
  EXPECT_NE(error_of([&] { layers.push_back("holder", torch::nn::Linear(nullptr)); }), "");
  EXPECT_THAT(
      error_of([&] { layers.push_back("pointer", std::shared_ptr<torch::nn::LinearImpl>()); }),
      HasSubstr("[layers]"));
  EXPECT_THAT(
      error_of([&] { layers.push_back(Layer("body", Layer::Body{})); }), HasSubstr("[layers]"));
}

TEST(LayersTest, RunsAFactoryOnce) {
  int runs = 0;
  Layers layers;
  layers.push_back("factory", [&runs] {
    ++runs;
    return torch::nn::Linear(4, 3);
  });
  EXPECT_FALSE(layers[0].is_built());
  EXPECT_EQ(layers[0].module(), nullptr);
  layers.build(1);
  layers.build(1);
  EXPECT_TRUE(layers[0].is_built());
  EXPECT_EQ(runs, 1);
}

TEST(LayersTest, APipelineRunsEachFactoryOnce) {
  int runs = 0;
  Layers layers;
  for (const char* name : {"a", "b", "c"}) {
    layers.push_back(name, [&runs] {
      ++runs;
      return torch::nn::Linear(4, 4);
    });
  }
  const Pipeline pipeline(layers, {.num_stages = 2});
  EXPECT_EQ(runs, 3);
}

TEST(LayersTest, DrawsParametersByLayerNameAndSeedAlone) {
  auto make = [] { return torch::nn::Linear(4, 3); };
  auto weight = [](Layers& layers, int index) { return layers[index].module()->parameters()[0]; };
  Layers alone;
  alone.push_back("head", make);
  alone.build(5);
  Layers among;
  among.push_back("before", [] { return torch::nn::Linear(100, 100); });
  among.push_back("head", make);
  torch::manual_seed(99);
  among[1].build(5);
  among[0].build(5);
  EXPECT_TRUE(testing::bit_equal(weight(among, 1), weight(alone, 0)));
  Layers other_seed;
  other_seed.push_back("head", make);
  other_seed.build(6);
  EXPECT_FALSE(testing::same_bits(weight(other_seed, 0), weight(alone, 0)));
  Layers other_name;
  other_name.push_back("tail", make);
  other_name.build(5);
  EXPECT_FALSE(testing::same_bits(weight(other_name, 0), weight(alone, 0)));
}

TEST(LayersTest, CountsParametersOfHugeFactoriesWithoutMemory) {
  Layers layers;
  layers.push_back("huge", [] { return torch::nn::Linear(100000, 100000); });
  layers.push_back("small", [] { return torch::nn::Linear(4, 3); });
  layers.push_back("function", &twice);
  EXPECT_EQ(layers.num_parameters_per_layer(), (std::vector<int64_t>{10'000'100'000, 15, 0}));
  EXPECT_EQ(layers.num_parameters(), 10'000'100'015);
  EXPECT_FALSE(layers[0].is_built());
}

/// Computes with what it makes, large and small, as positional encodings do.
struct TableImpl : torch::nn::Module {
  TableImpl() {
    const at::Tensor place = torch::arange(0, 2048, torch::kDouble);
    const at::Tensor table = torch::zeros({2048}, torch::kDouble) + place;
    weight = register_parameter("weight", table / table.max().item<double>());
  }
  at::Tensor forward(const at::Tensor& x) { return x * weight[0]; }
  at::Tensor weight;
};
TORCH_MODULE(Table);

TEST(LayersTest, CountsParametersOfFactoriesThatReadTheirTensors) {
  Layers layers;
  layers.push_back("table", [] { return Table(); });
  EXPECT_EQ(layers.num_parameters(), 2048);
}

TEST(LayersTest, CountsATiedParameterOnce) {
  torch::nn::Linear tied(4, 4);
  Layers layers;
  layers.push_back("a", tied);
  layers.push_back("b", tied);
  EXPECT_EQ(layers.num_parameters(), 20);
  layers.push_back("c", torch::nn::Sequential(tied, tied));
  EXPECT_EQ(layers[2].num_parameters(), 20);
  EXPECT_EQ(layers.num_parameters(), 20);
}

TEST(LayersTest, CopiesAndSlicesShareTheLayers) {
  Layers layers;
  layers.push_back("a", [] { return torch::nn::Linear(4, 4); });
  layers.push_back("b", &twice);
  Layers copy = layers;
  copy.push_back("c", &twice);
  EXPECT_EQ(layers.size(), 2);
  layers.slice(0, 1).build(0);
  EXPECT_TRUE(copy[0].is_built());
}

}  // namespace
}  // namespace gpipe
