#include "gpipe/core/reference.h"
#include "tests/testing/check.h"

namespace gpipe {
namespace {

using testing::bit_equal;
using testing::close;
using testing::column;
using testing::copies;
using testing::kModes;
using testing::normal;

using Norm = torch::nn::BatchNorm1d;
using NormOptions = torch::nn::BatchNorm1dOptions;

Norm norm_of_one(std::optional<double> momentum = 0.1) {
  Norm norm(NormOptions(1).momentum(momentum));
  norm->to(torch::kDouble);
  return norm;
}

/// One pipelined step over rows x with target 0.
void step_once(
    const Norm& norm,
    const at::Tensor& x,
    int num_micro_batches,
    plan::Rematerialize mode = plan::Rematerialize::Always,
    const char* schedule = "gpipe") {
  Layers layers;
  layers.push_back("norm", norm);
  layers.push_back("scale", testing::scale(1));
  Pipeline pipeline(
      layers,
      {.num_stages = 2,
       .num_micro_batches = num_micro_batches,
       .schedule = schedule,
       .rematerialize = mode});
  pipeline.step(x, torch::zeros_like(x), MSELoss());
}

TEST(BatchNormTest, TracksTheMiniBatchOnce) {
  for (auto mode : kModes) {
    for (int m : {1, 2}) {
      for (const char* schedule : {"gpipe", "1f1b"}) {
        Norm norm = norm_of_one();
        step_once(norm, column({0, 2, 4, 6}), m, mode, schedule);
        EXPECT_NEAR(norm->running_mean.item<double>(), 0.3, 1e-15);
        EXPECT_NEAR(norm->running_var.item<double>(), 0.9 + 0.1 * 20 / 3, 1e-15);
        EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
      }
    }
  }
}

TEST(BatchNormTest, StatisticsHaveTheSameBitsInEveryMode) {
  auto train = [](plan::Rematerialize mode, int num_steps) {
    Layers layers;
    layers.push_back("a", [] { return torch::nn::Linear(4, 4); });
    layers.push_back("norm", [] { return Norm(4); });
    layers.push_back("b", [] { return torch::nn::Linear(4, 1); });
    Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = 2, .rematerialize = mode});
    torch::optim::SGD optimizer(pipeline.parameters(), 0.1);
    for (int step = 0; step < num_steps; ++step) {
      optimizer.zero_grad();
      pipeline.step(
          normal({8, 4}, step, at::kFloat), normal({8, 1}, step + 9, at::kFloat), MSELoss());
      optimizer.step();
    }
    return copies(pipeline.named_buffers());
  };
  for (int num_steps : {1, 5}) {
    const auto expected = train(plan::Rematerialize::Never, num_steps);
    EXPECT_EQ(expected.size(), 3);
    EXPECT_EQ(expected[2].item<int64_t>(), num_steps);
    for (auto mode : kModes)
      EXPECT_TRUE(bit_equal(train(mode, num_steps), expected)) << to_string(mode);
  }
}

/// Statistics of plain LibTorch on whole mini-batches are those of the pipeline.
template <class Module>
void expect_plain_statistics(
    const std::function<Module()>& make, const std::vector<std::vector<int64_t>>& shapes, int m) {
  Module plain = make();
  Module pipelined = make();
  Layers layers;
  layers.push_back("norm", pipelined);
  layers.push_back("twice", [](at::Tensor x) { return x * 2; });
  Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = m});
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto x = normal(shapes[i], i) * 3 + 100;
    pipeline.step(x, torch::zeros_like(x), MSELoss());
    plain(x);
    EXPECT_TRUE(close(pipelined->running_mean, plain->running_mean)) << "step " << i;
    EXPECT_TRUE(close(pipelined->running_var, plain->running_var)) << "step " << i;
    EXPECT_TRUE(bit_equal(pipelined->num_batches_tracked, plain->num_batches_tracked));
  }
}

TEST(BatchNormTest, EqualsPlainStatisticsAlsoForShortBatches) {
  expect_plain_statistics<Norm>(
      [] {
        Norm norm(3);
        norm->to(torch::kDouble);
        return norm;
      },
      {{8, 3}, {8, 3}, {5, 3}, {4, 3}},
      2);
  expect_plain_statistics<torch::nn::BatchNorm2d>(
      [] {
        torch::nn::BatchNorm2d norm(2);
        norm->to(torch::kDouble);
        return norm;
      },
      {{8, 2, 3, 3}, {3, 2, 5, 5}, {1, 2, 4, 4}},
      3);
}

TEST(BatchNormTest, AveragesCumulativelyWithoutMomentum) {
  expect_plain_statistics<Norm>(
      [] {
        Norm norm(NormOptions(3).momentum(std::nullopt));
        norm->to(torch::kDouble);
        return norm;
      },
      {{8, 3}, {6, 3}, {8, 3}},
      3);
}

/// Calls one BatchNorm twice.
struct TwiceImpl : torch::nn::Module {
  explicit TwiceImpl(std::optional<double> momentum) {
    norm = register_module("norm", Norm(NormOptions(3).momentum(momentum)));
    to(torch::kDouble);
  }
  at::Tensor forward(const at::Tensor& x) { return norm(norm(x) * 2 + x); }
  Norm norm{nullptr};
};
TORCH_MODULE(Twice);

TEST(BatchNormTest, UpdatesOncePerCallOfAModuleThatIsCalledTwice) {
  for (std::optional<double> momentum : {std::optional<double>(0.1), std::optional<double>()}) {
    const Twice plain(momentum);
    std::vector<std::vector<at::Tensor>> found;
    for (auto mode : kModes) {
      for (int m : {1, 2}) {
        Twice twice(momentum);
        Layers layers;
        layers.push_back("twice", twice);
        Pipeline pipeline(layers, {.num_micro_batches = m, .rematerialize = mode});
        for (int step = 0; step < 3; ++step) {
          const auto x = normal({8, 3}, step);
          pipeline.step(x, x, MSELoss());
          if (mode == plan::Rematerialize::Always && m == 1)
            Twice(plain)->forward(x);
        }
        EXPECT_EQ(twice->norm->num_batches_tracked.item<int64_t>(), 6);
        if (m == 1) {
          EXPECT_TRUE(close(twice->norm->running_mean, plain->norm->running_mean));
          EXPECT_TRUE(close(twice->norm->running_var, plain->norm->running_var));
        } else {
          found.push_back(copies(pipeline.named_buffers()));
          EXPECT_TRUE(bit_equal(found.back(), found.front()));
        }
      }
    }
  }
}

TEST(BatchNormTest, LeavesTrackedInstanceNormAlone) {
  // Its statistics are updated with every micro-batch, as plain micro-batches do it; a recompute leaves no trace.
  auto make = [] {
    torch::nn::InstanceNorm1d norm(torch::nn::InstanceNorm1dOptions(2).track_running_stats(true));
    norm->to(torch::kDouble);
    return norm;
  };
  const auto x = normal({6, 2, 5}, 1);
  auto plain = make();
  for (const auto& piece : x.chunk(3))
    plain(piece);
  for (auto mode : kModes) {
    auto norm = make();
    Layers layers;
    layers.push_back("norm", norm);
    Pipeline pipeline(layers, {.num_micro_batches = 3, .rematerialize = mode});
    const at::Tensor input = x.clone().requires_grad_();
    pipeline.step(input, x, MSELoss());
    EXPECT_TRUE(bit_equal(norm->running_mean, plain->running_mean)) << to_string(mode);
    EXPECT_TRUE(bit_equal(norm->running_var, plain->running_var)) << to_string(mode);
    EXPECT_TRUE(bit_equal(norm->num_batches_tracked, plain->num_batches_tracked));
  }
}

TEST(BatchNormTest, UsesAndKeepsStatisticsInEvaluation) {
  Norm norm = norm_of_one();
  step_once(norm, column({0, 2, 4, 6}), 2);
  Layers layers;
  layers.push_back("norm", norm);
  Pipeline pipeline(layers, {.num_micro_batches = 2});
  pipeline.eval();
  at::NoGradGuard no_grad;
  const auto x = column({1, 2, 3});
  const auto before = copies(pipeline.named_buffers());
  const auto y = pipeline.forward(x);
  EXPECT_TRUE(bit_equal(copies(pipeline.named_buffers()), before));
  EXPECT_TRUE(bit_equal(y, norm(x)));
}

TEST(BatchNormTest, AFrozenNormStaysAsItIsInTraining) {
  Norm norm = norm_of_one();
  Layers layers;
  layers.push_back("scale", testing::scale(2));
  layers.push_back("norm", norm);
  Pipeline pipeline(layers, {.num_micro_batches = 2});
  norm->eval();
  const auto before = copies(pipeline.named_buffers());
  pipeline.step(column({0, 2, 4, 6}), column({0, 0, 0, 0}), MSELoss());
  EXPECT_TRUE(bit_equal(copies(pipeline.named_buffers()), before));
}

TEST(BatchNormTest, WorksWithoutRunningStatistics) {
  Norm norm(NormOptions(1).track_running_stats(false));
  norm->to(torch::kDouble);
  step_once(norm, column({0, 2, 4, 6}), 2);
  EXPECT_TRUE(norm->weight.grad().defined());
}

TEST(BatchNormTest, ForwardOfTheDropInTracksOnceToo) {
  for (bool graph : {true, false}) {
    Norm norm = norm_of_one();
    Layers layers;
    layers.push_back("norm", norm);
    layers.push_back("scale", testing::scale(1));
    Pipeline pipeline(
        layers,
        {.num_stages = 2, .num_micro_batches = 2, .rematerialize = plan::Rematerialize::Always});
    at::AutoGradMode grad_mode(graph);
    const auto y = pipeline.forward(column({0, 2, 4, 6}));
    if (graph)
      y.sum().backward();
    EXPECT_NEAR(norm->running_mean.item<double>(), 0.3, 1e-15);
    EXPECT_NEAR(norm->running_var.item<double>(), 0.9 + 0.1 * 20 / 3, 1e-15);
    EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
  }
}

}  // namespace
}  // namespace gpipe
