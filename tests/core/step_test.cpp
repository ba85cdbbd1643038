#include <cmath>
#include <thread>

#include "gpipe/core/intra_op_threads.h"
#include "gpipe/core/reference.h"
#include "tests/testing/check.h"

namespace gpipe {
namespace {

using testing::bit_equal;
using testing::close;
using testing::copies;
using testing::error_of;
using testing::exact;
using testing::gradients;
using ::testing::HasSubstr;
using testing::kModes;
using testing::normal;
using testing::whole_numbers;

/// Four Linear layers of whole numbers with ReLU between. [4 -> 2]
Layers exact_layers() {
  Layers layers;
  layers.push_back("a", exact(torch::nn::Linear(4, 8), 1));
  layers.push_back(
      "b", exact(torch::nn::Sequential(torch::nn::ReLU(), torch::nn::Linear(8, 8)), 11));
  layers.push_back(
      "c", exact(torch::nn::Sequential(torch::nn::ReLU(), torch::nn::Linear(8, 8)), 21));
  layers.push_back("d", exact(torch::nn::Linear(8, 2), 31));
  return layers;
}

at::Tensor run_all(const Layers& layers, at::Tensor x) {
  Tensors values{x};
  for (int i = 0; i < layers.size(); ++i)
    values = layers[i].forward(values);
  return values[0];
}

std::vector<at::Tensor> parameters_of(const Layers& layers) {
  std::vector<at::Tensor> all;
  for (int i = 0; i < layers.size(); ++i) {
    if (!layers[i].module())
      continue;
    for (const auto& parameter : layers[i].module()->parameters())
      all.push_back(parameter);
  }
  return all;
}

const Loss kSum([](at::Tensor y, at::Tensor t) { return (y * t).sum(); }, Reduction::Sum);

/// Five steps with whole-number updates, so that all stays exact; the gradients of the last.
std::vector<at::Tensor> train_exact(
    const std::function<void(const at::Tensor&, const at::Tensor&)>& step,
    const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> last;
  for (uint64_t i = 0; i < 5; ++i) {
    step(whole_numbers({8, 4}, 100 + i), whole_numbers({8, 2}, 200 + i));
    last = gradients(parameters);
    at::NoGradGuard no_grad;
    for (const auto& parameter : parameters) {
      parameter.add_(parameter.grad().sign());
      parameter.mutable_grad() = at::Tensor();
    }
  }
  return last;
}

TEST(StepTest, EqualsPlainTrainingInAllBitsWhereSumsAreExact) {
  const Layers plain = exact_layers();
  const auto expected = train_exact(
      [&](const at::Tensor& x, const at::Tensor& t) { (run_all(plain, x) * t).sum().backward(); },
      parameters_of(plain));
  for (int k : {1, 2, 3, 4}) {
    for (int m : {1, 2, 3, 4, 5, 8}) {
      Pipeline pipeline(exact_layers(), {.num_stages = k, .num_micro_batches = m});
      const auto parameters = pipeline.parameters();
      const auto actual = train_exact(
          [&](const at::Tensor& x, const at::Tensor& t) { pipeline.step(x, t, kSum); }, parameters);
      EXPECT_TRUE(bit_equal(actual, expected)) << "K=" << k << " M=" << m;
      EXPECT_TRUE(bit_equal(copies(parameters), copies(parameters_of(plain))));
    }
  }
}

TEST(StepTest, MakesFewerMicroBatchesOfFewRows) {
  const Layers plain = exact_layers();
  const auto x = whole_numbers({3, 4}, 1);
  const auto t = whole_numbers({3, 2}, 2);
  (run_all(plain, x) * t).sum().backward();
  for (const char* schedule : {"gpipe", "1f1b"}) {
    Pipeline pipeline(
        exact_layers(), {.num_stages = 2, .num_micro_batches = 8, .schedule = schedule});
    pipeline.step(x, t, kSum);
    const auto found = gradients(pipeline.parameters());
    for (size_t i = 0; i < found.size(); ++i)  // single rows give a -0 here and there
      EXPECT_TRUE(at::equal(found[i], parameters_of(plain)[i].grad()));
    EXPECT_THAT(
        error_of([&] { pipeline.step(torch::zeros({0, 4}), torch::zeros({0, 2}), kSum); }),
        HasSubstr("0 rows cannot be split into 8"));
  }
}

TEST(StepTest, SchedulesAgree) {
  for (int m : {2, 5}) {
    std::vector<std::vector<at::Tensor>> found;
    for (const char* schedule : {"gpipe", "1f1b"}) {
      Pipeline pipeline(
          exact_layers(), {.num_stages = 3, .num_micro_batches = m, .schedule = schedule});
      pipeline.step(normal({8, 4}, 1), normal({8, 2}, 2), kSum);
      found.push_back(gradients(pipeline.parameters()));
    }
    for (size_t i = 0; i < found[0].size(); ++i)
      EXPECT_TRUE(close(found[1][i], found[0][i]));
  }
}

TEST(StepTest, AnyNumberOfStagesHoldsTheWholeNetwork) {
  auto make = [] {
    Layers layers;
    for (int i = 0; i < 7; ++i)
      layers.push_back("layer" + std::to_string(i), exact(torch::nn::Linear(4, 4), 10 * i));
    return layers;
  };
  const auto x = whole_numbers({4, 4}, 5);
  const at::Tensor expected = run_all(make(), x);
  for (int k = 1; k <= 7; ++k) {
    Pipeline pipeline(make(), {.num_stages = k, .num_micro_batches = 2});
    int64_t num_parameters = 0;
    for (const StageInfo& stage : pipeline.stages()) {
      EXPECT_FALSE(stage.layers.empty());
      num_parameters += stage.num_parameters;
    }
    EXPECT_EQ(num_parameters, 7 * 20);
    EXPECT_EQ(pipeline.parameters().size(), 14);
    EXPECT_TRUE(bit_equal(pipeline.forward(x), expected)) << "K=" << k;
  }
  EXPECT_THAT(error_of([&] { Pipeline(make(), {.num_stages = 8}); }), HasSubstr("8 stages"));
}

TEST(StepTest, CutsByParametersOrAsTold) {
  auto stages_of = [](const std::vector<int>& widths, int num_stages, std::vector<int> cut = {}) {
    Layers layers;
    for (size_t i = 0; i < widths.size(); ++i) {
      const int width = widths[i];
      layers.push_back(std::to_string(i), [width] {
        return torch::nn::Linear(torch::nn::LinearOptions(1, width).bias(false));
      });
    }
    const Pipeline pipeline(layers, {.num_stages = num_stages, .cut = std::move(cut)});
    std::vector<size_t> sizes;
    for (const StageInfo& stage : pipeline.stages())
      sizes.push_back(stage.layers.size());
    return sizes;
  };
  EXPECT_EQ(stages_of({999, 9, 9, 9, 9, 9, 9, 9}, 4)[0], 1);
  EXPECT_EQ(stages_of({9, 19, 29, 39, 49, 59, 69, 79, 89}, 3), (std::vector<size_t>{5, 2, 2}));
  EXPECT_EQ(stages_of({1, 1, 1, 1}, 2, {1, 3}), (std::vector<size_t>{1, 3}));
  EXPECT_NE(error_of([&] { stages_of({1, 1, 1, 1}, 2, {1, 2}); }), "");
  EXPECT_NE(error_of([&] { stages_of({1, 1, 1, 1}, 2, {4, 0}); }), "");
  EXPECT_THAT(
      error_of([&] { stages_of({1, 1, 1, 1}, 2, {1, 1, 2}); }), HasSubstr("3 parts for 2 stages"));
}

TEST(StepTest, RefusesOptionsThatMeanNothing) {
  EXPECT_NE(error_of([] { Pipeline({}, {}); }), "");
  EXPECT_NE(error_of([] { Pipeline(exact_layers(), {.num_stages = 0}); }), "");
  EXPECT_THAT(
      error_of([] { Pipeline(exact_layers(), {.num_micro_batches = 0}); }),
      HasSubstr("0 micro-batches"));
  EXPECT_NE(error_of([] { Pipeline(exact_layers(), {.schedule = "gpip"}); }), "");
  EXPECT_NE(error_of([] { Pipeline(exact_layers(), {.num_threads = 0}); }), "");
  EXPECT_NE(error_of([] { Pipeline(exact_layers(), {.devices = {c10::kCPU, c10::kCPU}}); }), "");
}

TEST(StepTest, ShapesMayChangeAtEveryStep) {
  const IntraOpThreads threads(1);
  auto make = [] {
    Layers layers;
    layers.push_back("a", [] { return torch::nn::Conv2d(1, 4, 3); });
    layers.push_back("b", [](at::Tensor x) { return x.relu_(); });
    layers.push_back("c", [] { return torch::nn::Conv2d(4, 2, 3); });
    layers.push_back("pool", [](at::Tensor x) { return x.mean({2, 3}); });
    layers.build(3);
    return layers;
  };
  Pipeline pipeline(make(), {.num_stages = 3, .num_micro_batches = 2});
  const Layers plain = make();
  const std::vector<std::vector<int64_t>> shapes{
      {8, 1, 32, 32}, {8, 1, 28, 28}, {4, 1, 32, 32}, {8, 1, 36, 36}};
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto x = normal(shapes[i], i, at::kFloat);
    const auto t = normal({shapes[i][0], 2}, i, at::kFloat);
    const auto actual = pipeline.step(x, t, MSELoss());
    const auto expected = reference_step(
        plain, x, t, MSELoss(), {.num_micro_batches = 2, .step = static_cast<int64_t>(i)});
    EXPECT_TRUE(bit_equal(actual, expected));
    EXPECT_TRUE(bit_equal(gradients(pipeline.parameters()), gradients(parameters_of(plain))));
    EXPECT_EQ(pipeline.forward(x).sizes(), (std::vector<int64_t>{shapes[i][0], 2}));
    pipeline.set_step_count(static_cast<int64_t>(i) + 1);
  }
}

TEST(StepTest, EvaluatesAnyBatchBetweenSteps) {
  auto train = [](bool evaluates) {
    Pipeline pipeline(exact_layers(), {.num_stages = 2, .num_micro_batches = 4});
    for (uint64_t step = 0; step < 2; ++step) {
      pipeline.step(normal({8, 4}, step), normal({8, 2}, step + 9), kSum);
      for (int64_t rows : {32, 7, 1}) {
        if (!evaluates)
          continue;
        at::NoGradGuard no_grad;
        pipeline.eval();
        const auto x = normal({rows, 4}, 50);
        EXPECT_TRUE(close(pipeline.forward(x), run_all(pipeline.layers(), x)));
        pipeline.train();
      }
    }
    return gradients(pipeline.parameters());
  };
  EXPECT_TRUE(bit_equal(train(true), train(false)));
  Pipeline pipeline(exact_layers(), {});
  pipeline.eval();
  EXPECT_THAT(
      error_of([&] { pipeline.step(normal({8, 4}, 1), normal({8, 2}, 2), kSum); }),
      HasSubstr("eval mode"));
}

TEST(StepTest, ReportsALossThatIsNotFinite) {
  Pipeline pipeline(exact_layers(), {.num_stages = 2, .num_micro_batches = 4});
  auto x = normal({8, 4}, 1);
  x[5][2] = std::nan("");
  EXPECT_TRUE(std::isnan(pipeline.step(x, normal({8, 2}, 2), MSELoss()).item<double>()));
  pipeline.zero_grad();
  EXPECT_TRUE(
      std::isfinite(pipeline.step(normal({8, 4}, 1), normal({8, 2}, 2), MSELoss()).item<double>()));
}

TEST(StepTest, ShowsEveryMicroBatchToTheObserver) {
  for (auto mode : kModes) {
    Pipeline pipeline(
        exact_layers(), {.num_stages = 2, .num_micro_batches = 3, .rematerialize = mode});
    const auto x = whole_numbers({8, 4}, 1);
    const auto t = whole_numbers({8, 2}, 2);
    std::vector<int> order;
    Tensors outputs;
    Tensors targets;
    pipeline.observe([&](int micro_batch, const Tensors& y, const Tensors& target) {
      EXPECT_FALSE(y.at(0).requires_grad());
      order.push_back(micro_batch);
      outputs.push_back(y[0]);
      targets.push_back(target.at(0));
    });
    pipeline.step(x, t, kSum);
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
    EXPECT_TRUE(bit_equal(at::cat(outputs), run_all(pipeline.layers(), x)));
    EXPECT_TRUE(bit_equal(at::cat(targets), t));
    pipeline.observe({});
    pipeline.step(x, t, kSum);
    EXPECT_EQ(order.size(), 3);
  }
}

TEST(StepTest, AccumulatesMiniBatchesByGradientScale) {
  const auto x = whole_numbers({8, 4}, 1);
  const auto t = whole_numbers({8, 2}, 2);
  Pipeline whole(exact_layers(), {.num_stages = 2, .num_micro_batches = 2});
  whole.step(x, t, MSELoss());
  Pipeline halves(exact_layers(), {.num_stages = 2, .num_micro_batches = 2});
  const auto first = halves.step(x.slice(0, 0, 4), t.slice(0, 0, 4), MSELoss(), 0.5);
  halves.step(x.slice(0, 4), t.slice(0, 4), MSELoss(), 0.5);
  EXPECT_TRUE(bit_equal(gradients(halves.parameters()), gradients(whole.parameters())));
  const auto plain = at::mse_loss(run_all(halves.layers(), x.slice(0, 0, 4)), t.slice(0, 0, 4));
  EXPECT_TRUE(bit_equal(first, plain));  // the loss is not scaled
}

TEST(StepTest, PipelinesLiveSideBySide) {
  const auto x = normal({8, 4}, 1);
  const auto t = normal({8, 2}, 2);
  Pipeline one(exact_layers(), {.num_stages = 2, .num_micro_batches = 4});
  one.step(x, t, kSum);
  std::vector<std::vector<at::Tensor>> found(3);
  std::vector<std::jthread> threads;
  for (auto& result : found) {
    threads.emplace_back([&result, &x, &t] {
      Pipeline pipeline(exact_layers(), {.num_stages = 2, .num_micro_batches = 4});
      Pipeline moved = std::move(pipeline);
      moved.step(x, t, kSum);
      result = gradients(moved.parameters());
    });
  }
  threads.clear();
  for (const auto& result : found)
    EXPECT_TRUE(bit_equal(result, gradients(one.parameters())));
}

}  // namespace
}  // namespace gpipe
