#include <atomic>
#include <cmath>
#include <thread>

#include "gpipe/core/bits.h"
#include "gpipe/core/pipeline_optimizer.h"
#include "gpipe/core/worker_threads.h"
#include "tests/testing/check.h"

/// How a pipeline may be used, and how not.
namespace gpipe {
namespace {

using ::testing::HasSubstr;
using namespace gpipe::testing;

/// Layers that note the number of intra-op threads that they run with.
Layers layers_that_note(std::atomic<int>& num_threads) {
  Layers layers;
  layers.push_back("first", scale(2));
  layers.push_back("second", [&num_threads](at::Tensor x) {
    num_threads = at::get_num_threads();
    return x * 1;
  });
  return layers;
}

TEST(ThreadsTest, StagesKeepTheirNumberWhateverOthersSet) {
  std::atomic<int> of_one{0};
  std::atomic<int> of_three{0};
  const int before = at::get_num_threads();
  Pipeline one(layers_that_note(of_one), {.num_stages = 2, .num_threads = 1});
  Pipeline three(layers_that_note(of_three), {.num_stages = 2, .num_threads = 3});
  at::set_num_threads(2);
  for (int step = 0; step < 2; ++step) {
    one.step(column({1, 2}), column({0, 0}), MSELoss());
    three.step(column({1, 2}), column({0, 0}), MSELoss());
    EXPECT_EQ(of_one, 1);
    EXPECT_EQ(of_three, 3);
    EXPECT_EQ(at::get_num_threads(), 2);
  }
  at::set_num_threads(before);
}

TEST(UseTest, APipelineIsNotCalledFromWithin) {
  Layers layers;
  layers.push_back("scale", scale(3));
  Pipeline pipeline(layers, {});
  pipeline.observe([&](int, const Tensors&, const Tensors&) { pipeline.clip_grad_norm(1); });
  EXPECT_THAT(
      error_of([&] { pipeline.step(column({1}), column({0}), MSELoss()); }), HasSubstr("at work"));
  pipeline.observe({});
  pipeline.step(column({1}), column({0}), MSELoss());
}

TEST(UseTest, BuffersSharedAcrossStagesAreRefused) {
  torch::nn::BatchNorm1d norm(torch::nn::BatchNorm1dOptions(1).affine(false));
  Layers layers;
  layers.push_back("norm", norm);
  layers.push_back("again", norm);
  EXPECT_THAT(
      error_of([&] { Pipeline(layers, {.num_stages = 2}); }),
      AllOf(HasSubstr("'again'"), HasSubstr("'norm'"), HasSubstr("running_mean")));
  Pipeline(layers, {.num_stages = 1});
}

Layers fork_and_change() {
  Layers layers;
  layers.push_back("scale", scale(3));
  layers.push_back("fork", [](at::Tensor x) { return Tensors{x * 2, x}; });
  layers.push_back("alias", [](at::Tensor a, at::Tensor b) { return Tensors{a, a.view({-1}), b}; });
  layers.push_back("change", [](at::Tensor a, at::Tensor view, at::Tensor b) {
    return a.relu_() + view.unsqueeze(1) + b;
  });
  return layers;
}

TEST(UseTest, ACutBetweenAliasesThatAreChangedIsRefused) {
  EXPECT_THAT(
      error_of([] {
        Pipeline pipeline(fork_and_change(), {.num_stages = 2, .cut = {3, 1}});
        pipeline.step(column({1, -2}), column({0, 0}), MSELoss());
      }),
      HasSubstr("shares its memory"));
  Pipeline pipeline(fork_and_change(), {.num_stages = 2, .cut = {2, 2}});
  pipeline.step(column({1, -2}), column({0, 0}), MSELoss());
}

TEST(UseTest, ModulesKeepTheirModesUntilTrainIsCalled) {
  torch::nn::Dropout frozen(0.5);
  frozen->eval();
  Layers layers;
  layers.push_back("scale", scale(1));
  layers.push_back("frozen", frozen);
  Pipeline pipeline(layers, {});
  EXPECT_DOUBLE_EQ(
      pipeline.step(column({1, 1, 1, 1}), column({0, 0, 0, 0}), MSELoss()).item<double>(), 1);
  EXPECT_FALSE(frozen->is_training());
  pipeline.train();
  EXPECT_TRUE(frozen->is_training());
}

TEST(UseTest, AnOptimizerFactoryThatReturnsNothingIsRefused) {
  Layers layers;
  layers.push_back("scale", scale(1));
  Pipeline pipeline(layers, {});
  EXPECT_THAT(
      error_of([&] {
        PipelineOptimizer(
            pipeline, [](auto) { return std::unique_ptr<torch::optim::Optimizer>(); });
      }),
      HasSubstr("stage 0"));
}

TEST(UseTest, ThreadsThatCannotRunTwiceAtOnceSaySo) {
  WorkerThreads workers(2);
  std::string error;
  workers.run([&](int worker) {
    if (worker == 0)
      error = error_of([&] { workers.run([](int) {}); });
  });
  EXPECT_THAT(error, HasSubstr("at work"));
}

TEST(BitsTest, SeesWhatEqualityDoesNot) {
  EXPECT_TRUE(gpipe::same_bits(doubles({1, NAN}), doubles({1, NAN})));
  EXPECT_FALSE(gpipe::same_bits(doubles({0.0}), doubles({-0.0})));
  EXPECT_FALSE(gpipe::same_bits(doubles({1}), doubles({1}).to(torch::kFloat)));
  EXPECT_FALSE(gpipe::same_bits(doubles({1}), doubles({1, 2})));
  EXPECT_TRUE(gpipe::same_bits({}, {}));
}

double loss_of(
    const Loss& loss, int num_micro_batches, const at::Tensor& logits, const at::Tensor& targets) {
  Layers layers;
  layers.push_back(
      "one", [weight = torch::ones({}, torch::kDouble).requires_grad_()](at::Tensor x) {
        return x * weight;
      });
  Pipeline pipeline(layers, {.num_micro_batches = num_micro_batches});
  return pipeline.step(logits, targets, loss).item<double>();
}

TEST(CrossEntropyTest, CountsByteTargetsByTheirClassWeights) {
  const auto logits = normal({5, 3}, 1);
  const auto targets = torch::tensor({0, 1, 2, 1, 0}, torch::kByte);
  const auto weight = doubles({1, 2, 4});
  const double whole =
      torch::nn::functional::cross_entropy(
          logits, targets, torch::nn::functional::CrossEntropyFuncOptions().weight(weight))
          .item<double>();
  EXPECT_NEAR(loss_of(CrossEntropyLoss({.weight = weight}), 2, logits, targets), whole, 1e-12);
}

TEST(CrossEntropyTest, TakesProbabilitiesWithTheClassesLast) {
  const auto logits = normal({5, 4, 3}, 1);
  const auto targets = torch::softmax(normal({5, 4, 3}, 2), -1);
  const double whole =
      torch::nn::functional::cross_entropy(logits.movedim(-1, 1), targets.movedim(-1, 1))
          .item<double>();
  EXPECT_NEAR(loss_of(CrossEntropyLoss({.class_dim = -1}), 2, logits, targets), whole, 1e-12);
}

}  // namespace
}  // namespace gpipe
