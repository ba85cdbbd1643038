#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "gpipe/core/digest.h"
#include "gpipe/core/pipeline_optimizer.h"
#include "tests/testing/check.h"

namespace gpipe {
namespace {

using testing::bit_equal;
using testing::copies;
using testing::error_of;
using testing::gradients;
using ::testing::HasSubstr;
using testing::normal;

torch::nn::Linear scale(float weight) {
  auto linear = testing::scale(weight);
  linear->to(at::kFloat);
  return linear;
}

/// Case 44: w = (4, 3) in two stages, gradients (3, 4).
struct Pair {
  Pair() {
    Layers layers;
    layers.push_back("a", a);
    layers.push_back("b", b);
    pipeline.emplace(layers, PipelineOptions{.num_stages = 2});
    const auto x = torch::ones({1, 1});
    pipeline->step(x, x, Loss([](at::Tensor y, at::Tensor) { return y.mean(); }));
  }
  std::pair<float, float> found() const {
    return {a->weight.grad().item<float>(), b->weight.grad().item<float>()};
  }
  torch::nn::Linear a = scale(4);
  torch::nn::Linear b = scale(3);
  std::optional<Pipeline> pipeline;
};

TEST(ClipTest, ScalesByTheNormOfAllStages) {
  Pair pair;
  EXPECT_EQ(pair.pipeline->clip_grad_norm(1), 5);
  EXPECT_EQ(pair.found(), std::pair(0.59999988F, 0.79999984F));
  Pair large;
  EXPECT_EQ(large.pipeline->clip_grad_norm(10), 5);
  EXPECT_EQ(large.found(), std::pair(3.0F, 4.0F));
}

TEST(ClipTest, KnowsOtherNorms) {
  Pair infinite;
  EXPECT_EQ(infinite.pipeline->clip_grad_norm(2, std::numeric_limits<double>::infinity()), 4);
  EXPECT_FLOAT_EQ(infinite.found().second, 2);
  Pair sum;
  EXPECT_EQ(sum.pipeline->clip_grad_norm(7, 1), 7);
  Pair zero;
  EXPECT_EQ(zero.pipeline->clip_grad_norm(0), 5);
  EXPECT_EQ(zero.found(), std::pair(0.0F, 0.0F));
  EXPECT_NE(error_of([&] { zero.pipeline->clip_grad_norm(-1); }), "");
  EXPECT_NE(error_of([&] { zero.pipeline->clip_grad_norm(1, 0); }), "");
}

TEST(ClipTest, LeavesZerosAndMissingGradients) {
  Pair pair;
  for (auto& parameter : pair.pipeline->parameters())
    parameter.mutable_grad().zero_();
  EXPECT_EQ(pair.pipeline->clip_grad_norm(1), 0);
  EXPECT_EQ(pair.found(), std::pair(0.0F, 0.0F));
  pair.a->weight.mutable_grad() = at::Tensor();
  pair.b->weight.mutable_grad().fill_(2);
  EXPECT_EQ(pair.pipeline->clip_grad_norm(1), 2);
  EXPECT_FALSE(pair.a->weight.grad().defined());
  pair.pipeline->zero_grad();
  EXPECT_EQ(pair.pipeline->clip_grad_norm(1), 0);
}

TEST(ClipTest, ShowsThatAGradientIsNotFinite) {
  Pair pair;
  pair.a->weight.mutable_grad().fill_(std::nanf(""));
  EXPECT_TRUE(std::isnan(pair.pipeline->clip_grad_norm(1)));
  EXPECT_TRUE(
      std::isnan(pair.pipeline->clip_grad_norm(1, std::numeric_limits<double>::infinity())));
}

/// Layers with parameters of odd sizes, two of them sharing a stage.
Layers odd_layers() {
  Layers layers;
  layers.push_back("a", [] { return torch::nn::Linear(7, 13); });
  layers.push_back("b", [] { return torch::nn::Linear(13, 5); });
  layers.push_back("relu", [](at::Tensor x) { return x.relu(); });
  layers.push_back("c", [] { return torch::nn::Linear(5, 3); });
  layers.build(9);
  return layers;
}

TEST(ClipTest, GivesTheSameBitsForEveryCut) {
  std::vector<at::Tensor> expected;
  double norm = 0;
  for (int k : {1, 2, 3, 4}) {
    Pipeline pipeline(odd_layers(), {.num_stages = k, .num_micro_batches = 2});
    pipeline.step(normal({8, 7}, 1, at::kFloat) * 30, normal({8, 3}, 2, at::kFloat), MSELoss());
    const double found = pipeline.clip_grad_norm(0.7);
    if (k == 1) {
      norm = found;
      expected = gradients(pipeline.parameters());
      EXPECT_GT(norm, 0.7);
    }
    EXPECT_EQ(found, norm);
    EXPECT_TRUE(bit_equal(gradients(pipeline.parameters()), expected)) << "K=" << k;
  }
}

TEST(ClipTest, AgreesWithLibTorch) {
  Pipeline pipeline(odd_layers(), {.num_stages = 2, .num_micro_batches = 2});
  pipeline.step(normal({8, 7}, 1, at::kFloat) * 30, normal({8, 3}, 2, at::kFloat), MSELoss());
  std::vector<at::Tensor> plain;
  for (const auto& parameter : pipeline.parameters()) {
    plain.push_back(parameter.detach().clone());
    plain.back().mutable_grad() = parameter.grad().clone();
  }
  const double expected = torch::nn::utils::clip_grad_norm_(plain, 0.5);
  EXPECT_NEAR(pipeline.clip_grad_norm(0.5), expected, 1e-5 * expected);
  for (size_t i = 0; i < plain.size(); ++i)
    EXPECT_TRUE(testing::close(pipeline.parameters()[i].grad(), plain[i].grad()));
}

TEST(ClipTest, TakesSparseGradients) {
  torch::nn::Embedding embedding(torch::nn::EmbeddingOptions(10, 2).sparse(true));
  Layers layers;
  layers.push_back("embedding", embedding);
  layers.push_back("head", [] { return torch::nn::Linear(2, 1); });
  Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = 2});
  pipeline.step(torch::tensor({1, 1, 3, 1}), torch::ones({4, 1}), MSELoss());
  ASSERT_TRUE(embedding->weight.grad().is_sparse());
  const auto dense = embedding->weight.grad().to_dense();
  double sum = dense.square().sum().item<double>();
  for (const auto& parameter : pipeline.layers()[1].module()->parameters())
    sum += parameter.grad().square().sum().item<double>();
  const double norm = pipeline.clip_grad_norm(1e-3);
  EXPECT_NEAR(norm, std::sqrt(sum), 1e-5 * norm);
  EXPECT_TRUE(testing::close(embedding->weight.grad().to_dense(), dense * (1e-3 / norm)));
}

/// Ten steps with an optimizer of its own for each stage, or with one for all.
std::vector<at::Tensor> train(const PipelineOptimizer::Factory& factory, bool one_for_all) {
  Pipeline pipeline(odd_layers(), {.num_stages = 3, .num_micro_batches = 2});
  std::unique_ptr<torch::optim::Optimizer> single;
  std::optional<PipelineOptimizer> parallel;
  if (one_for_all) {
    single = factory(pipeline.parameters());
  } else {
    parallel.emplace(pipeline, factory);
  }
  for (int step = 0; step < 10; ++step) {
    pipeline.zero_grad();
    pipeline.step(
        normal({8, 7}, step, at::kFloat), normal({8, 3}, step + 50, at::kFloat), MSELoss());
    one_for_all ? (void)single->step() : parallel->step();
  }
  return copies(pipeline.parameters());
}

TEST(PipelineOptimizerTest, EqualsOneOptimizerOverAllParameters) {
  const std::vector<PipelineOptimizer::Factory> factories{
      [](std::vector<at::Tensor> p) {
        return std::make_unique<torch::optim::AdamW>(
            std::move(p), torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
      },
      [](std::vector<at::Tensor> p) {
        return std::make_unique<torch::optim::SGD>(
            std::move(p), torch::optim::SGDOptions(1e-2).momentum(0.9).nesterov(true));
      },
      [](std::vector<at::Tensor> p) {
        return std::make_unique<torch::optim::RMSprop>(std::move(p), 1e-3);
      },
  };
  for (const auto& factory : factories)
    EXPECT_TRUE(bit_equal(train(factory, false), train(factory, true)));
}

TEST(PipelineOptimizerTest, LeavesOutFrozenStagesAndSetsTheRate) {
  Layers layers = odd_layers();
  for (auto& parameter : layers[0].module()->parameters())
    parameter.set_requires_grad(false);
  Pipeline pipeline(layers, {.num_stages = 4});
  std::vector<size_t> sizes;
  std::mutex mutex;
  PipelineOptimizer optimizer(pipeline, [&](std::vector<at::Tensor> p) {
    std::lock_guard lock(mutex);
    sizes.push_back(p.size());
    return std::make_unique<torch::optim::SGD>(std::move(p), 0.1);
  });
  EXPECT_EQ(sizes, (std::vector<size_t>{2, 2}));
  optimizer.set_lr(0);
  const auto before = copies(pipeline.parameters());
  pipeline.step(normal({8, 7}, 1, at::kFloat), normal({8, 3}, 2, at::kFloat), MSELoss());
  optimizer.step();
  EXPECT_TRUE(bit_equal(copies(pipeline.parameters()), before));
  optimizer.set_lr(0.1);
  optimizer.step();
  EXPECT_FALSE(testing::same_bits(pipeline.parameters()[2], before[2]));
  optimizer.zero_grad();
  EXPECT_FALSE(pipeline.parameters()[2].grad().defined());
}

TEST(PipelineTest, RunsAFunctionOnEveryStage) {
  Pipeline pipeline(odd_layers(), {.num_stages = 3, .cut = {1, 2, 1}});
  std::vector<size_t> sizes(3);
  pipeline.for_each_stage([&](int stage, const std::vector<at::Tensor>& parameters) {
    sizes[static_cast<size_t>(stage)] = parameters.size();
  });
  EXPECT_EQ(sizes, (std::vector<size_t>{2, 2, 2}));
  EXPECT_THAT(
      error_of([&] {
        pipeline.for_each_stage([](int stage, const std::vector<at::Tensor>&) {
          if (stage == 1)
            throw std::runtime_error("stage fell");
        });
      }),
      HasSubstr("stage fell"));
}

TEST(PipelineTest, FrozenStagesGetNoGradient) {
  for (auto mode : testing::kModes) {
    for (const std::vector<int>& frozen : std::vector<std::vector<int>>{{0}, {1}, {2}, {0, 1}}) {
      std::vector<torch::nn::Linear> w{testing::scale(2), testing::scale(3), testing::scale(5)};
      for (int i : frozen)
        w[static_cast<size_t>(i)]->weight.set_requires_grad(false);
      Layers layers;
      for (size_t i = 0; i < 3; ++i)
        layers.push_back(std::to_string(i), w[i]);
      Pipeline pipeline(layers, {.num_stages = 3, .num_micro_batches = 2, .rematerialize = mode});
      const auto x = testing::column({1, 1, 1, 1});
      torch::optim::SGD optimizer(
          pipeline.parameters(), torch::optim::SGDOptions(0.1).weight_decay(0.5));
      pipeline.step(x, x, Loss([](at::Tensor y, at::Tensor) { return y.mean(); }));
      optimizer.step();
      const double expected[] = {15, 10, 6};
      const double before[] = {2, 3, 5};
      for (int i = 0; i < 3; ++i) {
        const auto& weight = w[static_cast<size_t>(i)]->weight;
        if (std::find(frozen.begin(), frozen.end(), i) != frozen.end()) {
          EXPECT_FALSE(weight.grad().defined());
          EXPECT_EQ(weight.item<double>(), before[i]);
        } else {
          EXPECT_EQ(weight.grad().item<double>(), expected[i]);
        }
      }
    }
  }
}

TEST(PipelineTest, RefusesTensorsOfTheSameName) {
  Layers layers;
  layers.push_back("a", torch::nn::Sequential(torch::nn::Linear(2, 2)));  // a.0.weight
  layers.push_back("a.0", torch::nn::Linear(2, 2));                       // a.0.weight
  EXPECT_THAT(error_of([&] { Pipeline(layers, {}); }), HasSubstr("'a.0.weight'"));
}

TEST(DigestTest, IsThatOfTheWeightsAlone) {
  const std::string expected = digest(Pipeline(odd_layers(), {}));
  EXPECT_EQ(expected.size(), 32);
  for (int k : {2, 4})
    EXPECT_EQ(digest(Pipeline(odd_layers(), {.num_stages = k})), expected);
  Pipeline other(odd_layers(), {.num_stages = 2});
  at::NoGradGuard no_grad;
  other.parameters()[3][0].add_(1e-6);
  EXPECT_NE(digest(other), expected);
}

TEST(DigestTest, SeesNamesTypesShapesAndBitsButNotOrderOrStrides) {
  const auto a = normal({2, 3}, 1);
  const auto b = normal({3}, 2);
  const std::string expected = digest(NamedTensors{{"a", a}, {"b", b}});
  EXPECT_EQ(digest(NamedTensors{{"b", b}, {"a", a}}), expected);
  EXPECT_EQ(digest(NamedTensors{{"a", a.t().contiguous().t()}, {"b", b}}), expected);
  EXPECT_NE(digest(NamedTensors{{"a", a.view({3, 2})}, {"b", b}}), expected);
  EXPECT_NE(digest(NamedTensors{{"c", a}, {"b", b}}), expected);
  EXPECT_NE(digest(NamedTensors{{"a", a.view(at::kLong)}, {"b", b}}), expected);
  EXPECT_NE(digest(NamedTensors{{"a", -a}, {"b", b}}), expected);
}

}  // namespace
}  // namespace gpipe
