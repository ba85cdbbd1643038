#include "gpipe/core/intra_op_threads.h"
#include "gpipe/core/reference.h"
#include "tests/testing/check.h"

namespace gpipe {
namespace {

using testing::bit_equal;
using testing::close;
using testing::column;
using testing::copies;
using testing::doubles;
using testing::error_of;
using testing::gradients;
using ::testing::HasSubstr;
using testing::kModes;
using testing::normal;
using testing::scale;

const Loss kMean([](at::Tensor y, at::Tensor) { return y.mean(); });
const Loss kAddRows([](at::Tensor y, at::Tensor) { return y.sum(); }, Reduction::Sum);

double weight_gradient(const torch::nn::Linear& linear) {
  return linear->weight.grad().item<double>();
}

/// The network cut into every number of stages and micro-batches has the bits of REF-MB, for five steps.
void expect_reference(
    const std::function<Layers()>& make,
    const Values& inputs,
    const Values& targets,
    const Loss& loss) {
  const IntraOpThreads threads(1);
  for (int m : {1, 4}) {
    Layers plain = make();
    plain.build(0);
    std::vector<at::Tensor> expected;
    for (int64_t step = 0; step < 5; ++step)
      expected.push_back(
          reference_step(plain, inputs, targets, loss, {.num_micro_batches = m, .step = step}));
    const auto sums = gradients(Pipeline(plain, {}).parameters());
    for (auto mode : kModes) {
      for (int k = 1; k <= plain.size(); ++k) {
        Pipeline pipeline(make(), {.num_stages = k, .num_micro_batches = m, .rematerialize = mode});
        std::vector<at::Tensor> losses;
        for (int step = 0; step < 5; ++step)
          losses.push_back(pipeline.step(inputs, targets, loss));
        EXPECT_TRUE(bit_equal(losses, expected)) << "K=" << k << " M=" << m;
        EXPECT_TRUE(bit_equal(gradients(pipeline.parameters()), sums)) << "K=" << k << " M=" << m;
      }
    }
  }
}

TEST(BorderTest, CarriesUndefinedTensorsAndFlags) {
  auto make = [] {
    Layers layers;
    layers.push_back("a", scale(2), [](auto& linear, at::Tensor x) {
      return std::make_tuple(linear.forward(x), at::Tensor(), torch::ones({1}, torch::kBool));
    });
    layers.push_back("b", [](at::Tensor h, at::Tensor none, at::Tensor flag) {
      EXPECT_FALSE(none.defined());
      EXPECT_TRUE(flag.item<bool>());
      return h * 3;
    });
    return layers;
  };
  expect_reference(make, column({1, 2, 3, 4}), column({0, 0, 0, 0}), MSELoss());
}

TEST(BorderTest, CarriesSeveralTensorsOfDifferentKinds) {
  for (int extra : {0, 1, 2, 4}) {
    for (auto mode : kModes) {
      const auto a = scale(2);
      const auto b = scale(3);
      const auto c = scale(5);
      Layers layers;
      layers.push_back("a", a, [extra](auto& linear, at::Tensor x) {
        Tensors values{linear.forward(x)};
        const Tensors more{
            torch::arange(4).unsqueeze(1),
            torch::tensor(10.0),
            torch::ones({7}, at::kHalf),
            at::Tensor()};
        values.insert(values.end(), more.begin(), more.begin() + extra);
        return values;
      });
      layers.push_back("b", b, [](auto& linear, const Tensors& values) {
        Tensors next = values;
        next[0] = linear.forward(values[0]);
        return next;
      });
      layers.push_back("c", c, [extra](auto& linear, const Tensors& values) {
        at::Tensor y = linear.forward(values[0]);
        if (extra > 0)
          y = y + values[1];
        return extra > 1 ? y + values[2] : y;
      });
      Pipeline pipeline(layers, {.num_stages = 3, .rematerialize = mode});
      const auto loss =
          pipeline.step(torch::ones({4, 1}, at::kDouble), column({0, 0, 0, 0}), kMean);
      EXPECT_EQ(loss.item<double>(), 30 + (extra > 0 ? 1.5 : 0) + (extra > 1 ? 10 : 0));
      EXPECT_EQ(weight_gradient(a), 15);
      EXPECT_EQ(weight_gradient(b), 10);
      EXPECT_EQ(weight_gradient(c), 6);
    }
  }
}

TEST(BorderTest, CarriesSeveralOutputsOfOneOperator) {
  for (auto mode : kModes) {
    for (int m : {1, 2}) {
      const auto w = scale(2);
      Layers layers;
      layers.push_back("scale", w, [](auto& linear, at::Tensor x) {
        return linear.forward(x.view({-1, 1})).view({-1, 4}).chunk(2, 1);
      });
      layers.push_back("sum", [](at::Tensor a, at::Tensor b) { return a.sum(1) + 10 * b.sum(1); });
      Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = m, .rematerialize = mode});
      const auto x = doubles({1, 2, 3, 4, 1, 2, 3, 4}).view({2, 4});
      pipeline.step(x, x, kMean);
      EXPECT_EQ(weight_gradient(w), 73);
    }
  }
}

TEST(BorderTest, CarriesViewsAndUnchangedInputs) {
  const std::vector<std::function<at::Tensor(at::Tensor)>> views{
      [](at::Tensor h) { return h.view({-1, 2, 4}).transpose(1, 2).reshape({h.size(0), 8}); },
      [](at::Tensor h) { return h.view({-1, 2, 4}).transpose(1, 2); },
      [](at::Tensor h) { return h.slice(1, 0, 1).expand({-1, 8}); },
      [](at::Tensor h) { return h.slice(1, 1, 8, 2); },
      [](at::Tensor h) { return h.chunk(2, 1)[0]; },
      [](at::Tensor h) { return h; },
      [](at::Tensor h) { return h.t().contiguous().t(); },
  };
  for (const auto& view : views) {
    auto make = [&view] {
      Layers layers;
      layers.push_back("a", testing::exact(torch::nn::Linear(4, 8), 1));
      layers.push_back("view", view);
      layers.push_back("tanh", [](at::Tensor h) { return h.tanh().reshape({h.size(0), -1}); });
      layers.push_back(
          "b", testing::exact(torch::nn::Linear(view(torch::ones({1, 8})).numel(), 8), 5));
      layers.push_back("last", view);
      return layers;
    };
    expect_reference(make, normal({8, 4}, 1), normal({8, 1}, 2), kAddRows);
  }
}

TEST(BorderTest, AValueMayBePassedSeveralTimes) {
  auto make = [] {
    Layers layers;
    layers.push_back("a", [] { return torch::nn::Linear(4, 8); });
    layers.push_back("copies", [](at::Tensor h) { return Tensors{h, h, h, h}; });
    layers.push_back("mix", [](at::Tensor a, at::Tensor b, at::Tensor c, at::Tensor d) {
      return Tensors{a.tanh() * d, b.sigmoid(), c.exp() / 3, d};
    });
    layers.push_back("sum", [](at::Tensor a, at::Tensor b, at::Tensor c, at::Tensor d) {
      return a * 0.3 + b * c + d.sin();
    });
    return layers;
  };
  const auto x = normal({8, 4}, 1, at::kFloat);
  expect_reference(make, x, x, kAddRows);
}

TEST(BorderTest, CarriesEveryDtypeExactly) {
  Tensors sent;
  for (auto dtype :
       {at::kDouble,
        at::kFloat,
        at::kBFloat16,
        at::kHalf,
        at::kInt,
        at::kLong,
        at::kByte,
        at::kBool,
        at::kComplexFloat})
    sent.push_back((normal({2, 3}, 1) * 3).to(dtype));
  Layers layers;
  layers.push_back("send", [&sent](at::Tensor) { return sent; });
  layers.push_back("pass", [](const Tensors& values) { return values; });
  layers.push_back("last", [](const Tensors& values) { return values; });
  Pipeline pipeline(layers, {.num_stages = 3});
  EXPECT_TRUE(bit_equal(pipeline.forward_all(torch::ones({2, 1})), sent));
}

TEST(BorderTest, NoCombinationOfSizesWaits) {
  for (int64_t width : {1, 1 << 14}) {
    for (int k : {2, 3, 4}) {
      for (int m = 1; m <= 9; ++m) {
        Layers layers;
        for (int i = 0; i < k; ++i)
          layers.push_back(std::to_string(i), [](at::Tensor x) { return x * 2; });
        Pipeline pipeline(
            layers,
            {.num_stages = k, .num_micro_batches = m, .schedule = m % 2 == 0 ? "gpipe" : "1f1b"});
        const at::Tensor x = torch::ones({9, width}).requires_grad_();
        pipeline.step(x, x.detach(), kAddRows);
        ASSERT_EQ(x.grad().sum().item<double>(), static_cast<double>(9 * width << k));
      }
    }
  }
}

TEST(BorderTest, RowsAreTheFirstDimension) {
  Layers layers;
  layers.push_back("lstm", [] { return torch::nn::LSTM(2, 3); });
  layers.push_back("first", [](at::Tensor y, at::Tensor, at::Tensor) { return y; });
  Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = 2});
  const auto error =
      error_of([&] { pipeline.step(torch::ones({6, 4, 2}), torch::ones({4, 3}), MSELoss()); });
  EXPECT_THAT(error, HasSubstr("4 rows"));
  EXPECT_THAT(error, HasSubstr("has 6"));
}

TEST(BorderTest, TakesContainersAndModulesThatReturnTuples) {
  auto make = [] {
    Layers layers;
    layers.push_back("a", [] { return torch::nn::Linear(4, 4); });
    layers.push_back(
        "inner", [] { return torch::nn::Sequential(torch::nn::Linear(4, 4), torch::nn::ReLU()); });
    layers.push_back("rows", [](at::Tensor h) { return h.view({-1, 1, 4}); });
    layers.push_back(
        "lstm", [] { return torch::nn::LSTM(torch::nn::LSTMOptions(4, 6).batch_first(true)); });
    layers.push_back("first", [](at::Tensor y, at::Tensor, at::Tensor) { return y.squeeze(1); });
    layers.push_back("head", [] { return torch::nn::Linear(6, 2); });
    return layers;
  };
  expect_reference(make, normal({8, 4}, 1, at::kFloat), normal({8, 2}, 2, at::kFloat), MSELoss());
}

TEST(BorderTest, PassesSkipConnectionsThroughLayersBetween) {
  for (auto mode : kModes) {
    for (int m : {1, 4}) {
      const auto w1 = scale(2);
      const auto w2 = scale(3);
      Layers layers;
      layers.push_back("start", w1, [](auto& linear, at::Tensor x) {
        const auto h = linear.forward(x);
        return std::make_tuple(h, h);
      });
      layers.push_back("middle", w2, [](auto& linear, at::Tensor h, at::Tensor kept) {
        return std::make_tuple(linear.forward(h), kept);
      });
      layers.push_back("end", [](at::Tensor h, at::Tensor kept) { return h + kept; });
      Pipeline pipeline(layers, {.num_stages = 3, .num_micro_batches = m, .rematerialize = mode});
      const auto x = column({1, 1, 1, 1});
      EXPECT_EQ(pipeline.step(x, x, kMean).item<double>(), 8);
      EXPECT_EQ(weight_gradient(w1), 4);
      EXPECT_EQ(weight_gradient(w2), 2);
    }
  }
}

TEST(BorderTest, SharesAParameterWithinAStageOnly) {
  for (auto mode : kModes) {
    const auto tied = scale(2);
    Layers layers;
    layers.push_back("encode", tied);
    layers.push_back("middle", [](at::Tensor x) { return x; });
    layers.push_back("decode", tied);
    Pipeline pipeline(layers, {.num_micro_batches = 2, .rematerialize = mode});
    EXPECT_EQ(pipeline.parameters().size(), 1);
    torch::optim::SGD optimizer(pipeline.parameters(), 0.1);
    const auto x = column({1, 1});
    EXPECT_EQ(pipeline.step(x, x, kMean).item<double>(), 4);
    EXPECT_EQ(weight_gradient(tied), 4);
    EXPECT_EQ(pipeline.clip_grad_norm(100), 4);
    optimizer.step();
    EXPECT_EQ(tied->weight.item<double>(), 1.6);
    const auto error = error_of([&] { Pipeline(layers, {.num_stages = 2}); });
    EXPECT_THAT(error, HasSubstr("'weight'"));
    EXPECT_THAT(error, HasSubstr("'encode'"));
    EXPECT_THAT(error, HasSubstr("'decode'"));
  }
}

TEST(BorderTest, GivesInputsTheirGradients) {
  for (auto mode : kModes) {
    const auto w = scale(3);
    Layers layers;
    layers.push_back("scale", w);
    layers.push_back("square", [](at::Tensor y) { return y * y; });
    Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = 2, .rematerialize = mode});
    const at::Tensor x = column({1, 2, 3, 4}).requires_grad_();
    pipeline.step(x, torch::zeros_like(x), kMean);
    EXPECT_TRUE(bit_equal(x.grad(), column({4.5, 9, 13.5, 18})));
    EXPECT_EQ(weight_gradient(w), 45);
    pipeline.step(x, torch::zeros_like(x), kMean);
    EXPECT_TRUE(bit_equal(x.grad(), column({9, 18, 27, 36})));
    EXPECT_THAT(error_of([&] { pipeline.step(x * 2, x, kMean); }), HasSubstr("part of a graph"));
  }
}

}  // namespace
}  // namespace gpipe
