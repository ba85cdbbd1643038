#include "gpipe/core/profile.h"

#include "gpipe/core/allocator.h"
#include "gpipe/core/self_check.h"
#include "tests/testing/check.h"

namespace gpipe {
namespace {

using testing::bit_equal;
using testing::copies;
using testing::error_of;
using testing::gradients;
using ::testing::HasSubstr;
using testing::normal;

/// Embedding, dropout, BatchNorm, an in-place layer and a tied one.
Layers network() {
  torch::nn::Linear tied(8, 8);
  Layers layers;
  layers.push_back("embedding", [] { return torch::nn::Embedding(10, 8); });
  layers.push_back("tied", tied);
  layers.push_back("dropout", torch::nn::Dropout(0.5));
  layers.push_back("norm", [] { return torch::nn::BatchNorm1d(8); });
  layers.push_back("norm2", [] {
    return torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(8).track_running_stats(false));
  });
  layers.push_back("relu", [](at::Tensor x) { return x.relu_(); });
  layers.push_back("again", tied);
  layers.push_back("large", [] { return torch::nn::Linear(8, 4000); });
  layers.push_back("head", [] { return torch::nn::Linear(4000, 2); });
  layers.build(1);
  return layers;
}

/// What must be left as it was, gradients too.
struct Trace {
  explicit Trace(const Layers& layers) : pipeline(layers, {}) {
    at::NoGradGuard no_grad;
    for (auto& parameter : pipeline.parameters())
      parameter.mutable_grad() = torch::full_like(parameter, 3);
    torch::manual_seed(5);
    before = now();
  }
  std::vector<at::Tensor> now() const {
    auto all = copies(pipeline.named_parameters());
    for (const auto& more : {copies(pipeline.named_buffers()), gradients(pipeline.parameters())})
      all.insert(all.end(), more.begin(), more.end());
    all.push_back(at::detail::getDefaultCPUGenerator().get_state());
    return all;
  }
  Pipeline pipeline;
  std::vector<at::Tensor> before;
};

TEST(ProfileTest, MeasuresPlausibleCosts) {
  use_metered_allocator();
  Layers layers = network();
  const auto ids = torch::arange(16).remainder(10);
  const plan::CostTable table = profile(layers, ids, {.num_repeats = 3});
  ASSERT_EQ(table.layers.size(), 9);
  EXPECT_EQ(table.micro_batch_rows, 16);
  EXPECT_EQ(table.input_bytes, 16 * 8);
  EXPECT_EQ(table.layers[0].name, "embedding");
  EXPECT_EQ(table.layers[0].parameters, 80);
  EXPECT_EQ(table.layers[0].output_bytes, 16 * 8 * 4);
  EXPECT_EQ(table.layers[1].parameters, 72);
  EXPECT_EQ(table.layers[2].parameters, 0);
  EXPECT_EQ(table.layers[7].parameters, 36000);
  EXPECT_EQ(table.layers[7].parameter_bytes, 144000);
  EXPECT_EQ(table.layers[7].output_bytes, 16 * 4000 * 4);
  for (const auto& layer : table.layers) {
    EXPECT_GT(layer.forward_seconds, 0) << layer.name;
    EXPECT_GE(layer.backward_seconds, 0) << layer.name;
    EXPECT_GE(layer.activation_bytes, 0) << layer.name;
  }
  EXPECT_GT(table.layers[7].backward_seconds, 0);
  EXPECT_GE(table.layers[2].activation_bytes, 16 * 8);  // the mask
}

TEST(ProfileTest, LeavesNoTrace) {
  Layers layers = network();
  const Trace trace(layers);
  layers[2].module()->eval();
  profile(layers, torch::arange(16).remainder(10), {.num_repeats = 2});
  EXPECT_TRUE(bit_equal(trace.now(), trace.before));
  EXPECT_FALSE(layers[2].module()->is_training());
  EXPECT_TRUE(layers[3].module()->is_training());
}

TEST(ProfileTest, RefusesNoRepeats) {
  Layers layers = network();
  EXPECT_THAT(
      error_of([&] { profile(layers, torch::arange(4), {.num_repeats = 0}); }),
      HasSubstr("0 repeats"));
}

TEST(SelfCheckTest, PassesOnAGoodNetworkAndLeavesNoTrace) {
  Layers layers = network();
  const Trace trace(layers);
  for (const char* schedule : {"gpipe", "1f1b"}) {
    const auto report = self_check(
        layers,
        {.num_stages = 2, .num_micro_batches = 3, .schedule = schedule, .cut = {8, 1}},
        torch::arange(16).remainder(10),
        normal({16, 2}, 1, at::kFloat),
        MSELoss());
    EXPECT_TRUE(report.ok) << report.to_string();
    EXPECT_EQ(report.layer, -1);
    EXPECT_TRUE(bit_equal(trace.now(), trace.before));
  }
}

TEST(SelfCheckTest, LeavesTheGradientsOfInputs) {
  Layers layers;
  layers.push_back("scale", testing::scale(2));
  const at::Tensor x = testing::column({1, 2, 3}).requires_grad_();
  EXPECT_TRUE(self_check(layers, {.num_micro_batches = 2}, x, x.detach(), MSELoss()).ok);
  EXPECT_FALSE(x.grad().defined());
}

TEST(SelfCheckTest, NamesALayerThatDependsOnSomethingElse) {
  int runs = 0;
  Layers layers;
  layers.push_back("good", testing::scale(2));
  layers.push_back("dropout", torch::nn::Dropout(0.5));
  layers.push_back("counter", [&runs](at::Tensor x) { return x * ++runs; });
  layers.push_back("head", testing::scale(2));
  const auto x = testing::column({1, 2, 3, 4});
  const auto report =
      self_check(layers, {.num_stages = 2, .num_micro_batches = 2}, x, x, MSELoss());
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(report.layer, 2);
  EXPECT_EQ(report.layer_name, "counter");
  EXPECT_THAT(report.to_string(), HasSubstr("layer 'counter' (index 2)"));
}

/// Gradients that depend on a counter.
struct OddGradient : torch::autograd::Function<OddGradient> {
  static inline int runs = 0;
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x.clone();
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext*, torch::autograd::variable_list gradients) {
    return {gradients[0] * ++runs};
  }
};

TEST(SelfCheckTest, NamesTheLayerWhoseGradientDiffers) {
  Layers layers;
  layers.push_back("first", testing::scale(2));
  layers.push_back("second", testing::scale(2));
  layers.push_back("odd", [](at::Tensor x) { return OddGradient::apply(x); });
  layers.push_back("head", testing::scale(2));
  const auto x = testing::column({1, 2, 3, 4});
  const auto report =
      self_check(layers, {.num_stages = 2, .num_micro_batches = 2}, x, x * 5, MSELoss());
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(report.layer_name, "second");
  EXPECT_THAT(report.difference, HasSubstr("gradient of weight"));
}

}  // namespace
}  // namespace gpipe
