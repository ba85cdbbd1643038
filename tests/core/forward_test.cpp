#include <c10/core/InferenceMode.h>

#include "gpipe/core/allocator.h"
#include "tests/testing/check.h"

namespace gpipe {
namespace {

using testing::bit_equal;
using testing::close;
using testing::column;
using testing::error_of;
using testing::gradients;
using ::testing::HasSubstr;
using testing::kModes;
using testing::normal;
using testing::scale;

Layers smooth_layers() {
  Layers layers;
  layers.push_back("a", testing::exact(torch::nn::Linear(4, 8), 1));
  layers.push_back("tanh", [](at::Tensor x) { return x.tanh(); });
  layers.push_back("b", testing::exact(torch::nn::Linear(8, 3), 2));
  return layers;
}

at::Tensor run_all(const Layers& layers, const at::Tensor& x) {
  Tensors values{x};
  for (int i = 0; i < layers.size(); ++i)
    values = layers[i].forward(values);
  return values[0];
}

std::vector<at::Tensor> parameters_of(const Layers& layers) {
  return Pipeline(layers, {}).parameters();
}

TEST(ForwardTest, JoinsTheCallersGraph) {
  for (auto mode : kModes) {
    for (int m : {1, 3, 4}) {
      Pipeline pipeline(
          smooth_layers(), {.num_stages = 3, .num_micro_batches = m, .rematerialize = mode});
      const Layers plain = smooth_layers();
      const at::Tensor head = normal({3, 3}, 5);
      auto loss_of = [&](const std::function<at::Tensor(at::Tensor)>& model,
                         const at::Tensor& x,
                         const at::Tensor& w) {
        return model((x * 2).sin()).matmul(w).square().mean();
      };
      const at::Tensor x = normal({8, 4}, 1).requires_grad_();
      const at::Tensor w = head.clone().requires_grad_();
      const at::Tensor plain_x = normal({8, 4}, 1).requires_grad_();
      const at::Tensor plain_w = head.clone().requires_grad_();
      const auto loss = loss_of([&](const at::Tensor& z) { return pipeline.forward(z); }, x, w);
      const auto expected =
          loss_of([&](const at::Tensor& z) { return run_all(plain, z); }, plain_x, plain_w);
      loss.backward();
      expected.backward();
      EXPECT_TRUE(close(loss.detach(), expected.detach()));
      EXPECT_TRUE(close(x.grad(), plain_x.grad()));
      EXPECT_TRUE(close(w.grad(), plain_w.grad()));
      const auto found = gradients(pipeline.parameters());
      const auto plain_found = gradients(parameters_of(plain));
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_TRUE(close(found[i], plain_found[i])) << i;
    }
  }
}

TEST(ForwardTest, EqualsAStepWhereSumsAreExact) {
  const auto x = testing::whole_numbers({8, 4}, 1);
  const auto t = testing::whole_numbers({8, 3}, 2);
  auto make = [] {
    Layers layers;
    layers.push_back("a", testing::exact(torch::nn::Linear(4, 8), 1));
    layers.push_back("relu", [](at::Tensor y) { return y.relu(); });
    layers.push_back("b", testing::exact(torch::nn::Linear(8, 3), 2));
    return layers;
  };
  Pipeline stepped(make(), {.num_stages = 2, .num_micro_batches = 4});
  stepped.step(x, t, MSELoss(Reduction::Sum));
  Pipeline joined(make(), {.num_stages = 2, .num_micro_batches = 4});
  at::mse_loss(joined.forward(x), t, at::Reduction::Sum).backward();
  EXPECT_TRUE(bit_equal(gradients(joined.parameters()), gradients(stepped.parameters())));
}

TEST(ForwardTest, ReturnsSeveralOutputs) {
  for (int m : {1, 2}) {
    const auto w = scale(3);
    Layers layers;
    layers.push_back("scale", w);
    layers.push_back("outputs", [](at::Tensor h) {
      return Tensors{h * 2, torch::arange(h.size(0)), at::Tensor(), h.square(), h.detach()};
    });
    Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = m});
    const auto x = column({1, 2, 3, 4});
    EXPECT_THAT(error_of([&] { pipeline.forward(x); }), HasSubstr("returns 5 tensors"));
    const Tensors outputs = pipeline.forward_all(x);
    ASSERT_EQ(outputs.size(), 5);
    EXPECT_TRUE(outputs[0].requires_grad());
    EXPECT_FALSE(outputs[1].requires_grad());
    EXPECT_FALSE(outputs[2].defined());
    EXPECT_TRUE(outputs[3].requires_grad());
    EXPECT_FALSE(outputs[4].requires_grad());
    (outputs[0].sum() + outputs[3].sum()).backward();
    EXPECT_EQ(w->weight.grad().item<double>(), 2 * 10 + 2 * 3 * 30);
    // One output alone: the other gets no gradient.
    pipeline.zero_grad();
    pipeline.forward_all(x)[3].sum().backward();
    EXPECT_EQ(w->weight.grad().item<double>(), 2 * 3 * 30);
  }
}

TEST(ForwardTest, KeepsNothingUnderNoGrad) {
  use_metered_allocator();
  Layers layers;
  layers.push_back("a", [] { return torch::nn::Linear(256, 256); });
  layers.push_back("tanh", [](at::Tensor x) { return x.tanh(); });
  layers.push_back("b", [] { return torch::nn::Linear(256, 256); });
  Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = 2});
  const auto x = torch::ones({64, 256});
  at::NoGradGuard no_grad;
  const auto live = [&] {
    int64_t sum = 0;
    for (const auto& stage : pipeline.stages())
      sum += stage.live_bytes;
    return sum;
  };
  pipeline.forward(x);
  const int64_t before = live();
  const auto y = pipeline.forward(x);
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(live(), before);
}

TEST(ForwardTest, WorksInInferenceMode) {
  Pipeline pipeline(smooth_layers(), {.num_stages = 2, .num_micro_batches = 3});
  pipeline.eval();
  const auto expected = run_all(pipeline.layers(), normal({7, 4}, 1)).detach();
  c10::InferenceMode inference;
  const auto x = normal({7, 4}, 1);
  EXPECT_TRUE(close(pipeline.forward(x), expected));
  EXPECT_TRUE(close(pipeline.forward(x), expected));
}

TEST(ForwardTest, RefusesASecondBackward) {
  Pipeline pipeline(smooth_layers(), {.num_stages = 2, .num_micro_batches = 2});
  const auto loss = pipeline.forward(normal({4, 4}, 1)).sum();
  loss.backward({}, /*retain_graph=*/true);
  EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("second time"));
  const auto once = pipeline.forward(normal({4, 4}, 1)).sum();
  once.backward();
  EXPECT_THAT(error_of([&] { once.backward(); }), HasSubstr("second time"));
}

TEST(ForwardTest, RefusesGradientsOfGradients) {
  Layers layers;
  layers.push_back("a", [] { return torch::nn::Linear(2, 4); });
  layers.push_back("tanh", torch::nn::Tanh());
  layers.push_back("b", [] { return torch::nn::Linear(4, 1); });
  Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = 2});
  const at::Tensor x = normal({4, 2}, 1, at::kFloat).requires_grad_();
  const auto y = pipeline.forward(x).sum();
  EXPECT_THAT(
      error_of([&] { torch::autograd::grad({y}, {x}, {}, std::nullopt, /*create_graph=*/true); }),
      HasSubstr("not supported"));
}

TEST(ForwardTest, RefusesParametersThatChangedBeforeBackward) {
  Pipeline pipeline(smooth_layers(), {.num_stages = 2, .num_micro_batches = 2});
  torch::optim::SGD optimizer(pipeline.parameters(), 0.1);
  pipeline.forward(normal({4, 4}, 1)).sum().backward();
  const auto loss = pipeline.forward(normal({4, 4}, 1)).sum();
  optimizer.step();
  EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("parameters were changed"));
  pipeline.zero_grad();
  pipeline.forward(normal({4, 4}, 1)).sum().backward();
}

TEST(ForwardTest, SaysSoWhenThePipelineIsGone) {
  at::Tensor loss;
  {
    Pipeline pipeline(smooth_layers(), {.num_stages = 2, .num_micro_batches = 2});
    loss = pipeline.forward(normal({4, 4}, 1)).sum();
  }
  EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("destroyed"));
}

TEST(ForwardTest, RefusesANetworkThatIsFrozenWhole) {
  for (auto mode : kModes) {
    const auto w = scale(2);
    w->weight.set_requires_grad(false);
    Layers layers;
    layers.push_back("a", w);
    layers.push_back("b", [](at::Tensor x) { return x * 2; });
    Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = 2, .rematerialize = mode});
    const auto x = column({1, 2});
    EXPECT_THAT(error_of([&] { pipeline.step(x, x, MSELoss()); }), HasSubstr("frozen"));
    EXPECT_TRUE(bit_equal(pipeline.forward(x), x * 4));
  }
}

struct Fall : torch::autograd::Function<Fall> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x.clone();
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext*, torch::autograd::variable_list) {
    throw std::runtime_error("it fell");
  }
};

TEST(ForwardTest, AnErrorInBackwardReachesTheCaller) {
  bool throws = true;
  Layers layers = smooth_layers();
  layers.push_back("fall", [&throws](at::Tensor x) { return throws ? Fall::apply(x) : x.clone(); });
  Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = 2});
  const auto loss = pipeline.forward(normal({4, 4}, 1)).sum();
  const auto error = error_of([&] { loss.backward(); });
  EXPECT_THAT(error, HasSubstr("it fell"));
  EXPECT_THAT(error, HasSubstr("stage 1, layer 'fall' (index 3), micro-batch 1, backward"));
  throws = false;
  pipeline.zero_grad();
  pipeline.forward(normal({4, 4}, 1)).sum().backward();
  const Layers plain = smooth_layers();
  run_all(plain, normal({4, 4}, 1)).sum().backward();
  const auto found = gradients(pipeline.parameters());
  const auto expected = gradients(parameters_of(plain));
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(close(found[i], expected[i]));
}

TEST(ForwardTest, ForgetsAForwardWithoutBackward) {
  Pipeline pipeline(smooth_layers(), {.num_stages = 2, .num_micro_batches = 2});
  const auto dropped = pipeline.forward(normal({6, 4}, 3)).sum();
  const auto loss = pipeline.forward(normal({4, 4}, 1)).sum();
  pipeline.step(normal({4, 4}, 1), normal({4, 3}, 2), MSELoss());
  pipeline.zero_grad();
  loss.backward();
  const Layers plain = smooth_layers();
  run_all(plain, normal({4, 4}, 1)).sum().backward();
  EXPECT_TRUE(close(pipeline.parameters()[0].grad(), plain[0].module()->parameters()[0].grad()));
}

TEST(ForwardTest, FillsGradientsOfInputsThatOnlySomeMicroBatchesUse) {
  for (bool drop_in : {true, false}) {
    const auto w = scale(2);
    Layers layers;
    layers.push_back("scale", w, [](auto& linear, at::Tensor x, at::Tensor extra) {
      const auto y = linear.forward(x);
      return extra[0].item<double>() > 0 ? y + extra : y;
    });
    Pipeline pipeline(layers, {.num_micro_batches = 2});
    const auto x = column({1, 2, 3, 4});
    const at::Tensor extra = column({1, 1, 0, 0}).requires_grad_();
    if (drop_in) {
      pipeline.forward({x, extra}).sum().backward();
    } else {
      const Loss sum([](at::Tensor y, at::Tensor) { return y.sum(); }, Reduction::Sum);
      pipeline.step({x, extra}, x, sum);
    }
    EXPECT_TRUE(bit_equal(extra.grad(), column({1, 1, 0, 0})));
    EXPECT_EQ(w->weight.grad().item<double>(), 10);
  }
}

}  // namespace
}  // namespace gpipe
