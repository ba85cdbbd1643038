#include <ATen/autocast_mode.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "gpipe/core/random_key.h"
#include "tests/testing/check.h"

namespace gpipe {
namespace {

using testing::bit_equal;
using testing::copies;
using testing::gradients;
using testing::kModes;
using testing::normal;

/// Draws of every kind: in layers, in an LSTM, in backward, in the loss.
struct NoisyGradient : torch::autograd::Function<NoisyGradient> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x.clone();
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext*, torch::autograd::variable_list gradients) {
    return {gradients[0] + torch::randn_like(gradients[0])};
  }
};

Layers noisy_layers() {
  Layers layers;
  layers.push_back("a", [] { return torch::nn::Linear(8, 8); });
  layers.push_back("dropout", torch::nn::Dropout(0.5));
  layers.push_back("lstm", [] {
    return torch::nn::LSTM(torch::nn::LSTMOptions(8, 8).num_layers(2).dropout(0.5));
  });
  layers.push_back("first", [](at::Tensor y, at::Tensor, at::Tensor) {
    return NoisyGradient::apply(y) + torch::rand({1}) + torch::randn_like(y);
  });
  layers.push_back("alpha", torch::nn::AlphaDropout(0.3));
  layers.push_back("rrelu", [](at::Tensor x) { return torch::rrelu(x, 0.1, 0.4, true); });
  layers.push_back("b", [] { return torch::nn::Linear(8, 2); });
  layers.build(3);
  return layers;
}

const Loss kNoisyLoss([](at::Tensor y, at::Tensor t) {
  return ((y - t).square() * torch::rand_like(y)).mean();
});

/// Losses and gradients of two steps.
std::vector<at::Tensor> train(int num_stages, plan::Rematerialize mode, uint64_t seed = 1) {
  Pipeline pipeline(
      noisy_layers(),
      {.num_stages = num_stages, .num_micro_batches = 4, .rematerialize = mode, .seed = seed});
  std::vector<at::Tensor> found;
  for (int step = 0; step < 2; ++step) {
    found.push_back(pipeline.step(
        normal({12, 1, 8}, step, at::kFloat),
        normal({12, 1, 2}, step + 5, at::kFloat),
        kNoisyLoss));
  }
  for (const auto& gradient : gradients(pipeline.parameters()))
    found.push_back(gradient);
  return found;
}

TEST(RandomnessTest, DrawsTheSameForEveryCutAndMode) {
  const auto expected = train(1, plan::Rematerialize::Never);
  for (auto mode : kModes) {
    for (int k : {1, 2, 3, 5, 7})
      EXPECT_TRUE(bit_equal(train(k, mode), expected)) << "K=" << k << " " << to_string(mode);
  }
  EXPECT_FALSE(testing::same_bits(train(2, plan::Rematerialize::Never, 2)[0], expected[0]));
}

TEST(RandomnessTest, LeavesTheDefaultGeneratorAlone) {
  torch::manual_seed(11);
  const auto expected = torch::rand({4});
  torch::manual_seed(11);
  train(3, plan::Rematerialize::Always);
  EXPECT_TRUE(bit_equal(torch::rand({4}), expected));
}

TEST(RandomnessTest, OtherThreadsMayDrawMeanwhile) {
  const auto expected = train(3, plan::Rematerialize::ExceptLast);
  std::atomic<bool> stop{false};
  std::thread drawing([&stop] {
    while (!stop)
      torch::dropout(torch::rand({16}), 0.5, true);
  });
  const auto actual = train(3, plan::Rematerialize::ExceptLast);
  stop = true;
  drawing.join();
  EXPECT_TRUE(bit_equal(actual, expected));
}

TEST(RandomnessTest, TwentyRunsGiveOneSetOfBits) {
  const auto expected = train(4, plan::Rematerialize::ExceptLast);
  for (int run = 1; run < 20; ++run)
    ASSERT_TRUE(bit_equal(train(4, plan::Rematerialize::ExceptLast), expected)) << "run " << run;
}

TEST(RandomnessTest, StepsMicroBatchesAndLayersDrawDifferently) {
  Layers layers;
  layers.push_back("a", [](at::Tensor x) { return x + torch::rand_like(x); });
  layers.push_back("b", [](at::Tensor x) { return torch::cat({x, torch::rand_like(x)}, 1); });
  Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = 2});
  at::NoGradGuard no_grad;
  const auto x = torch::zeros({2, 1});
  const auto first = pipeline.forward(x);
  const auto second = pipeline.forward(x);  // the next step's key
  std::vector<float> all;
  for (const auto& y : {first, second}) {
    for (int row : {0, 1}) {
      for (int layer : {0, 1})
        all.push_back(y[row][layer].item<float>());
    }
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  pipeline.set_step_count(0);
  EXPECT_TRUE(bit_equal(pipeline.forward(x), first));
}

TEST(RandomnessTest, MasksHitTheirRate) {
  Layers layers;
  layers.push_back("dropout", torch::nn::Dropout(0.3));
  Pipeline pipeline(layers, {.num_micro_batches = 4});
  at::NoGradGuard no_grad;
  const auto y = pipeline.forward(torch::ones({400, 100}));
  EXPECT_NEAR(y.eq(0).to(at::kDouble).mean().item<double>(), 0.3, 0.01);
  pipeline.eval();
  EXPECT_TRUE(bit_equal(pipeline.forward(torch::ones({4, 4})), torch::ones({4, 4})));
}

TEST(RandomnessTest, KeysOfDifferentPlacesDiffer) {
  std::vector<uint64_t> keys;
  for (auto draw :
       {Draw::Parameters, Draw::Forward, Draw::Backward, Draw::Loss, Draw::LossBackward}) {
    for (int64_t step : {0, 1, 2}) {
      for (int64_t micro_batch : {0, 1, 2}) {
        for (int64_t layer : {-2, 0, 1, 2})
          keys.push_back(draw_key(7, draw, step, micro_batch, layer));
      }
    }
  }
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
  EXPECT_NE(parameter_key(7, "a"), parameter_key(7, "b"));
  EXPECT_NE(parameter_key(7, "a"), parameter_key(8, "a"));
}

/// Everything under autocast to bfloat16, through the option or the caller's own scope.
std::vector<at::Tensor> train_autocast(int num_stages, plan::Rematerialize mode, bool by_caller) {
  Layers layers;
  layers.push_back("a", [] { return torch::nn::Linear(16, 32); });
  layers.push_back("gelu", [](at::Tensor x) { return torch::gelu(x); });
  layers.push_back("b", [] { return torch::nn::Linear(32, 16); });
  layers.push_back("norm", [] { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({16})); });
  layers.push_back("c", [] { return torch::nn::Linear(16, 4); });
  PipelineOptions options{
      .num_stages = num_stages, .num_micro_batches = 4, .rematerialize = mode, .seed = 1};
  if (!by_caller)
    options.autocast = at::kBFloat16;
  Pipeline pipeline(layers, options);
  at::autocast::set_autocast_enabled(at::kCPU, by_caller);
  std::vector<at::Tensor> found{
      pipeline.step(normal({12, 16}, 1, at::kFloat), normal({12, 4}, 2, at::kFloat), MSELoss())};
  at::autocast::set_autocast_enabled(at::kCPU, false);
  for (const auto& gradient : gradients(pipeline.parameters()))
    found.push_back(gradient);
  return found;
}

TEST(AutocastTest, GivesTheSameBitsForEveryCutAndMode) {
  const auto expected = train_autocast(1, plan::Rematerialize::Never, false);
  for (auto mode : kModes) {
    for (int k : {1, 2, 5})
      EXPECT_TRUE(bit_equal(train_autocast(k, mode, false), expected)) << "K=" << k;
  }
  EXPECT_TRUE(bit_equal(train_autocast(2, plan::Rematerialize::Always, true), expected));
  for (const auto& tensor : expected)
    EXPECT_EQ(tensor.scalar_type(), at::kFloat);
}

TEST(AutocastTest, ReachesTheLayers) {
  Layers layers;
  layers.push_back("a", [] { return torch::nn::Linear(4, 4); });
  layers.push_back("b", [] { return torch::nn::Linear(4, 4); });
  Pipeline pipeline(layers, {.num_stages = 2, .autocast = at::kBFloat16});
  EXPECT_EQ(pipeline.forward(torch::ones({2, 4})).scalar_type(), at::kBFloat16);
}

}  // namespace
}  // namespace gpipe
