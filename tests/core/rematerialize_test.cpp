#include <atomic>

#include "gpipe/core/intra_op_threads.h"
#include "gpipe/core/reference.h"
#include "tests/testing/check.h"

namespace gpipe {
namespace {

using plan::Rematerialize;
using testing::bit_equal;
using testing::column;
using testing::copies;
using testing::error_of;
using testing::gradients;
using ::testing::HasSubstr;
using testing::kModes;
using testing::normal;

/// Counts its runs in a buffer and in plain C++.
struct CountingImpl : torch::nn::Module {
  explicit CountingImpl(std::shared_ptr<std::atomic<int>> runs) : runs_(std::move(runs)) {
    calls = register_buffer("calls", torch::zeros({}, torch::kLong));
    sum = register_buffer("sum", torch::zeros({1}, torch::kDouble));
  }
  at::Tensor forward(const at::Tensor& x) {
    ++*runs_;
    calls += 1;
    sum.add_(x.detach().sum());
    return x * 2;
  }
  at::Tensor calls;
  at::Tensor sum;

 private:
  std::shared_ptr<std::atomic<int>> runs_;
};
TORCH_MODULE(Counting);

struct Counts {
  int runs;
  int64_t calls;
  double sum;
};

Counts count(Rematerialize mode, int num_micro_batches, int stage, int num_stages = 2) {
  auto runs = std::make_shared<std::atomic<int>>(0);
  Counting counting(runs);
  Layers layers;
  for (int i = 0; i < num_stages; ++i) {
    const std::string name = "scale" + std::to_string(i);
    if (i == stage) {
      layers.push_back("counting", counting);
    } else {
      layers.push_back(name, testing::scale(2));
    }
  }
  layers.push_back("last", testing::scale(1));
  std::vector<int> cut(static_cast<size_t>(num_stages), 1);
  cut.back() = 2;
  Pipeline pipeline(
      layers,
      {.num_stages = num_stages,
       .num_micro_batches = num_micro_batches,
       .rematerialize = mode,
       .cut = cut});
  const auto x = column({1, 2, 3, 4, 5, 6, 7, 8});
  pipeline.step(x, torch::zeros_like(x), MSELoss());
  return {runs->load(), counting->calls.item<int64_t>(), counting->sum.item<double>()};
}

TEST(RematerializeTest, RunsEachForwardAsOftenAsTheModeSays) {
  for (int stage : {0, 1}) {
    EXPECT_EQ(count(Rematerialize::Always, 4, stage).runs, 8);
    EXPECT_EQ(count(Rematerialize::ExceptLast, 4, stage).runs, 7);
    EXPECT_EQ(count(Rematerialize::Never, 4, stage).runs, 4);
    EXPECT_EQ(count(Rematerialize::ExceptLast, 1, stage).runs, 1);
    EXPECT_EQ(count(Rematerialize::Always, 1, stage).runs, 2);
  }
  EXPECT_EQ(count(Rematerialize::Always, 4, 0, 1).runs, 8);
  EXPECT_EQ(count(Rematerialize::ExceptLast, 4, 0, 1).runs, 7);
  EXPECT_EQ(count(Rematerialize::Never, 4, 0, 1).runs, 4);
}

TEST(RematerializeTest, MovesNoBufferOfTheUsersOwn) {
  for (auto mode : kModes) {
    for (int stage : {0, 1}) {
      const Counts counts = count(mode, 4, stage);
      EXPECT_EQ(counts.calls, 4) << to_string(mode);
      EXPECT_EQ(counts.sum, stage == 0 ? 36 : 72) << to_string(mode);
    }
  }
}

/// Statistics in the user's own hand, under the names that BatchNorm uses.
struct OwnNormImpl : torch::nn::Module {
  OwnNormImpl() {
    mean = register_buffer("running_mean", torch::zeros({1}, torch::kDouble));
    var = register_buffer("running_var", torch::ones({1}, torch::kDouble));
    count = register_buffer("num_batches_tracked", torch::zeros({}, torch::kLong));
    weight = register_parameter("weight", torch::ones({1}, torch::kDouble));
  }
  at::Tensor forward(const at::Tensor& x) {
    at::NoGradGuard no_grad;
    mean.mul_(0.5).add_(x.mean(0), 0.5);
    count += 1;
    at::AutoGradMode grad(true);
    return x * weight;
  }
  at::Tensor mean, var, count, weight;
};
TORCH_MODULE(OwnNorm);

TEST(RematerializeTest, LeavesStatisticsOfOtherModulesToThem) {
  for (auto mode : kModes) {
    OwnNorm norm;
    Layers layers;
    layers.push_back("norm", norm);
    Pipeline pipeline(layers, {.num_micro_batches = 4, .rematerialize = mode});
    const auto x = column({2, 4, 6, 8});
    pipeline.step(x, x, MSELoss());
    EXPECT_EQ(norm->count.item<int64_t>(), 4) << to_string(mode);
    EXPECT_EQ(norm->mean.item<double>(), ((1 + 4) * 0.5 + 6) * 0.25 + 4) << to_string(mode);
  }
}

Layers dropout_layers() {
  Layers layers;
  layers.push_back("a", [] { return torch::nn::Linear(8, 8); });
  layers.push_back("dropout", torch::nn::Dropout(0.5));
  layers.push_back("b", [] { return torch::nn::Linear(8, 1); });
  layers.build(7);
  return layers;
}

TEST(RematerializeTest, DropsTheSameUnitsInTheRecompute) {
  std::vector<std::vector<at::Tensor>> weights;
  for (auto mode : kModes) {
    for (int k : {1, 2, 3}) {
      Pipeline pipeline(
          dropout_layers(),
          {.num_stages = k, .num_micro_batches = 4, .rematerialize = mode, .seed = 7});
      torch::optim::SGD optimizer(pipeline.parameters(), 0.1);
      for (uint64_t step = 0; step < 10; ++step) {
        optimizer.zero_grad();
        pipeline.step(
            normal({8, 8}, step, at::kFloat), normal({8, 1}, step + 50, at::kFloat), MSELoss());
        optimizer.step();
      }
      weights.push_back(copies(pipeline.parameters()));
      EXPECT_TRUE(bit_equal(weights.back(), weights.front())) << to_string(mode) << " K=" << k;
    }
  }
}

TEST(RematerializeTest, TakesInputsWithoutGradient) {
  const IntraOpThreads threads(1);
  for (bool integers : {true, false}) {
    auto make = [&] {
      Layers layers;
      if (integers) {
        layers.push_back("embedding", [] { return torch::nn::Embedding(10, 4); });
      } else {
        layers.push_back("linear", [] { return torch::nn::Linear(8, 4); });
      }
      layers.push_back("head", [] { return torch::nn::Linear(4, 2); });
      layers.build(1);
      return layers;
    };
    const auto x = integers ? torch::arange(8) : normal({8, 8}, 1, at::kFloat);
    const auto t = normal({8, 2}, 2, at::kFloat);
    const Layers plain = make();
    reference_step(plain, x, t, MSELoss(), {.num_micro_batches = 4});
    for (auto mode : kModes) {
      Pipeline pipeline(make(), {.num_stages = 2, .num_micro_batches = 4, .rematerialize = mode});
      pipeline.step(x, t, MSELoss());
      const auto parameters = pipeline.parameters();
      ASSERT_TRUE(parameters[0].grad().defined());
      EXPECT_TRUE(bit_equal(parameters[0].grad(), plain[0].module()->parameters()[0].grad()));
    }
  }
}

/// Two stages whose first layers write into their inputs, and a first stage whose graph needs what it sends; or the same
/// without writing, for plain autograd refuses the second.
Layers in_place_layers(bool in_place) {
  Layers layers;
  layers.push_back("relu", [in_place](at::Tensor x) { return in_place ? x.relu_() : x.relu(); });
  layers.push_back("a", testing::exact(torch::nn::Linear(4, 4), 1));
  layers.push_back("tanh", [](at::Tensor x) { return x.tanh(); });
  layers.push_back("mul", [in_place](at::Tensor x) { return in_place ? x.mul_(2) : x * 2; });
  layers.push_back("b", testing::exact(torch::nn::Linear(4, 2), 2));
  return layers;
}

TEST(RematerializeTest, LayersMayChangeTheirInputsInPlace) {
  const IntraOpThreads threads(1);
  const auto x = normal({8, 4}, 1);
  const auto t = normal({8, 2}, 2);
  const Layers plain = in_place_layers(false);
  reference_step(plain, x, t, MSELoss(), {.num_micro_batches = 4});
  const std::vector<at::Tensor> expected{
      plain[1].module()->parameters()[0].grad(), plain[4].module()->parameters()[0].grad()};
  for (auto mode : kModes) {
    Pipeline pipeline(
        in_place_layers(true),
        {.num_stages = 2, .num_micro_batches = 4, .rematerialize = mode, .cut = {3, 2}});
    for (int step = 0; step < 3; ++step) {
      const auto input = x.clone();
      pipeline.zero_grad();
      pipeline.step(input, t, MSELoss());
      EXPECT_TRUE(bit_equal(input, x)) << to_string(mode);
      const auto found = gradients(pipeline.parameters());
      EXPECT_TRUE(bit_equal(found[0], expected[0])) << to_string(mode);
      EXPECT_TRUE(bit_equal(found[2], expected[1])) << to_string(mode);
    }
  }
}

TEST(RematerializeTest, InPlaceLayersMayBeginAfterAnEvaluation) {
  auto train = [](Rematerialize mode, bool evaluates) {
    Layers layers;
    layers.push_back("tanh", [](at::Tensor x) { return x.tanh(); });
    layers.push_back("a", testing::exact(torch::nn::Linear(4, 4), 1));
    layers.push_back("sigmoid", [](at::Tensor x) { return x.sigmoid(); });
    layers.push_back("dropout", torch::nn::Dropout(torch::nn::DropoutOptions(0.5).inplace(true)));
    layers.push_back("b", testing::exact(torch::nn::Linear(4, 2), 2));
    Pipeline pipeline(
        layers, {.num_stages = 2, .num_micro_batches = 2, .rematerialize = mode, .cut = {3, 2}});
    if (evaluates) {
      at::NoGradGuard no_grad;
      pipeline.eval();
      pipeline.forward(normal({8, 4}, 1));
      pipeline.train();
    }
    pipeline.step(normal({8, 4}, 1), normal({8, 2}, 2), MSELoss());
    return gradients(pipeline.parameters());
  };
  const auto expected = train(Rematerialize::Never, false);
  for (auto mode : kModes)
    EXPECT_TRUE(bit_equal(train(mode, true), expected)) << to_string(mode);
}

TEST(RematerializeTest, RefusesALayerThatChangesItsInputOnlySometimes) {
  for (auto mode : kModes) {
    int run = 0;
    Layers layers;
    layers.push_back("a", testing::scale(1));
    layers.push_back("sigmoid", [](at::Tensor x) { return x.sigmoid(); });
    layers.push_back("odd", [&run](at::Tensor x) { return run++ % 4 == 1 ? x.mul_(2) : x * 2; });
    Pipeline pipeline(
        layers, {.num_stages = 2, .num_micro_batches = 4, .rematerialize = mode, .cut = {2, 1}});
    const auto x = column({1, 2, 3, 4});
    const auto error = error_of([&] { pipeline.step(x, x, MSELoss()); });
    EXPECT_THAT(error, HasSubstr("in place")) << to_string(mode);
    EXPECT_THAT(error, HasSubstr("stage 1")) << to_string(mode);
  }
}

TEST(RematerializeTest, IsTwoLinesWithoutAPipeline) {
  // K=1 with a layer of several inputs: same numbers as never.
  std::vector<at::Tensor> found;
  for (auto mode : kModes) {
    Layers layers;
    layers.push_back("bilinear", testing::exact(torch::nn::Bilinear(3, 4, 2), 5));
    Pipeline pipeline(layers, {.num_micro_batches = 2, .rematerialize = mode});
    pipeline.step({normal({6, 3}, 1), normal({6, 4}, 2)}, normal({6, 2}, 3), MSELoss());
    found.push_back(gradients(pipeline.parameters())[0]);
    EXPECT_TRUE(bit_equal(found.back(), found.front()));
  }
}

}  // namespace
}  // namespace gpipe
