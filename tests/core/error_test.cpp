#include <atomic>
#include <barrier>

#include "gpipe/core/pipeline_optimizer.h"
#include "gpipe/core/stage_error.h"
#include "tests/testing/check.h"

namespace gpipe {
namespace {

using plan::Op;
using plan::Rematerialize;
using ::testing::AnyOf;
using testing::bit_equal;
using testing::copies;
using testing::error_of;
using testing::gradients;
using ::testing::HasSubstr;
using testing::normal;

enum class Kind { Standard, Torch, Integer };

void fail(Kind kind) {
  if (kind == Kind::Standard)
    throw std::runtime_error("the shelf fell over");
  if (kind == Kind::Torch)
    TORCH_CHECK(false, "the shelf fell over");
  throw 7;
}

/// Throws in its `at`-th forward run since it was armed, or in its `at`-th backward run; -1 for never.
struct Trap {
  std::atomic<int> forward_at{-1};
  std::atomic<int> backward_at{-1};
  Kind kind = Kind::Standard;
};

struct TrapFunction : torch::autograd::Function<TrapFunction> {
  static at::Tensor forward(
      torch::autograd::AutogradContext* context, const at::Tensor& x, int64_t trap) {
    context->saved_data["trap"] = trap;
    return x.clone();
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context, torch::autograd::variable_list gradients) {
    auto* trap = reinterpret_cast<Trap*>(context->saved_data["trap"].toInt());
    if (trap->backward_at.fetch_sub(1) == 0)
      fail(trap->kind);
    return {gradients[0], at::Tensor()};
  }
};

/// Six layers with BatchNorm, dropout and a counter, a trap in the middle one of three stages.
struct Trapped {
  explicit Trapped(Rematerialize mode, int num_micro_batches = 5) {
    layers.push_back("a", [] { return torch::nn::Linear(4, 8); });
    layers.push_back("norm", [] { return torch::nn::BatchNorm1d(8); });
    layers.push_back("trap", [this](at::Tensor x) {
      if (trap.forward_at.fetch_sub(1) == 0)
        fail(trap.kind);
      return TrapFunction::apply(x, reinterpret_cast<int64_t>(&trap));
    });
    layers.push_back("dropout", torch::nn::Dropout(0.5));
    layers.push_back("norm2", [] { return torch::nn::BatchNorm1d(8); });
    layers.push_back("b", [] { return torch::nn::Linear(8, 2); });
    pipeline.emplace(
        layers,
        PipelineOptions{
            .num_stages = 3,
            .num_micro_batches = num_micro_batches,
            .rematerialize = mode,
            .cut = {2, 2, 2},
            .seed = 4});
    optimizer.emplace(*pipeline, [](std::vector<at::Tensor> parameters) {
      return std::make_unique<torch::optim::AdamW>(std::move(parameters), 0.01);
    });
  }

  at::Tensor step() {
    optimizer->zero_grad();
    at::Tensor loss =
        pipeline->step(normal({10, 4}, 1, at::kFloat), normal({10, 2}, 2, at::kFloat), MSELoss());
    optimizer->step();
    return loss;
  }

  std::vector<at::Tensor> state() const {
    auto all = copies(pipeline->named_parameters());
    for (const auto& buffer : copies(pipeline->named_buffers()))
      all.push_back(buffer);
    return all;
  }

  Layers layers;
  Trap trap;
  std::optional<Pipeline> pipeline;
  std::optional<PipelineOptimizer> optimizer;
};

struct Failure {
  Op op;
  int forward_at;
  int backward_at;
  int micro_batch;
};

/// Fails as told in the second step (or the first), and goes on as if nothing had happened.
void expect_recovery(Rematerialize mode, Kind kind, const Failure& failure, int steps_before) {
  Trapped trapped(mode);
  Trapped smooth(mode);
  for (int i = 0; i < steps_before; ++i) {
    trapped.step();
    smooth.step();
  }
  const auto before = trapped.state();
  trapped.trap.kind = kind;
  trapped.trap.forward_at = failure.forward_at;
  trapped.trap.backward_at = failure.backward_at;
  try {
    trapped.step();
    ADD_FAILURE() << "no error";
  } catch (const StageError& error) {
    EXPECT_EQ(error.action(), (plan::Action{failure.op, 1, failure.micro_batch})) << error.what();
    EXPECT_EQ(error.layer(), 2) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("layer 'trap' (index 2)"));
    EXPECT_THAT(
        error.what(),
        HasSubstr(kind == Kind::Integer ? "no std::exception" : "the shelf fell over"));
  }
  EXPECT_TRUE(bit_equal(trapped.state(), before));
  EXPECT_EQ(trapped.pipeline->step_count(), steps_before);
  trapped.trap.forward_at = -1;
  trapped.trap.backward_at = -1;
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(bit_equal(trapped.step(), smooth.step())) << "step " << i << " after the error";
  EXPECT_TRUE(bit_equal(trapped.state(), smooth.state()));
}

TEST(StageErrorTest, AnErrorInForwardLeavesNoTrace) {
  for (auto mode : {Rematerialize::Always, Rematerialize::Never}) {
    for (Kind kind : {Kind::Standard, Kind::Torch, Kind::Integer}) {
      for (int steps_before : {0, 1})
        expect_recovery(mode, kind, {Op::Forward, 3, -1, 3}, steps_before);
    }
  }
}

TEST(StageErrorTest, AnErrorInRecomputeLeavesNoTrace) {
  for (Kind kind : {Kind::Standard, Kind::Torch, Kind::Integer}) {
    for (int steps_before : {0, 1}) {
      // Five forwards, then the recompute of the last micro-batch, of the one before, ...
      expect_recovery(Rematerialize::Always, kind, {Op::Recompute, 6, -1, 3}, steps_before);
      expect_recovery(Rematerialize::ExceptLast, kind, {Op::Recompute, 5, -1, 3}, steps_before);
    }
  }
}

TEST(StageErrorTest, AnErrorInBackwardLeavesNoTrace) {
  for (auto mode : {Rematerialize::Always, Rematerialize::Never}) {
    for (Kind kind : {Kind::Standard, Kind::Torch, Kind::Integer}) {
      for (int steps_before : {0, 1})
        expect_recovery(mode, kind, {Op::Backward, -1, 1, 3}, steps_before);
    }
  }
}

TEST(StageErrorTest, AnErrorInEvaluationLeavesNoTrace) {
  Trapped trapped(Rematerialize::ExceptLast);
  trapped.pipeline->eval();
  at::NoGradGuard no_grad;
  const auto x = normal({10, 4}, 1, at::kFloat);
  const auto expected = trapped.pipeline->forward(x);
  trapped.trap.forward_at = 2;
  EXPECT_THAT(error_of([&] { trapped.pipeline->forward(x); }), HasSubstr("micro-batch 2"));
  EXPECT_TRUE(bit_equal(trapped.pipeline->forward(x), expected));
}

TEST(StageErrorTest, AnErrorInTheFirstTrainingStepAfterAnEvaluationLeavesNoTrace) {
  struct CountingImpl : torch::nn::Module {
    CountingImpl() { calls = register_buffer("calls", torch::zeros({}, torch::kLong)); }
    at::Tensor forward(const at::Tensor& x) {
      if (is_training())
        calls += 1;
      return x * 1;
    }
    at::Tensor calls;
  };
  auto counting = std::make_shared<CountingImpl>();
  bool throws = true;
  Layers layers;
  layers.push_back("counting", counting);
  layers.push_back("a", testing::scale(1));
  layers.push_back("trap", [&throws](at::Tensor x) {
    if (throws)
      throw std::runtime_error("no");
    return x;
  });
  Pipeline pipeline(layers, {.num_micro_batches = 2});
  const auto x = testing::column({1, 2});
  throws = false;
  pipeline.eval();
  pipeline.forward(x);
  pipeline.train();
  throws = true;
  EXPECT_NE(error_of([&] { pipeline.step(x, x, MSELoss()); }), "");
  EXPECT_EQ(counting->calls.item<int64_t>(), 0);
}

TEST(StageErrorTest, OneOfTwoErrorsAtOnceIsReported) {
  for (int run = 0; run < 10; ++run) {
    std::barrier meeting(2);
    bool throws = true;
    Layers layers;
    // Stage 0 is at micro-batch 1 when stage 1 is at micro-batch 0: both throw then.
    std::atomic<int> first_runs{0};
    layers.push_back("a", testing::scale(1));
    layers.push_back("first", [&](at::Tensor x) {
      if (throws && first_runs++ == 1) {
        meeting.arrive_and_wait();
        throw std::runtime_error("first fell");
      }
      return x;
    });
    layers.push_back("second", [&](at::Tensor x) {
      if (throws) {
        meeting.arrive_and_wait();
        throw std::runtime_error("second fell");
      }
      return x;
    });
    Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = 4, .cut = {2, 1}});
    const auto x = testing::column({1, 2, 3, 4});
    EXPECT_THAT(
        error_of([&] { pipeline.step(x, x, MSELoss()); }),
        AnyOf(HasSubstr("first fell"), HasSubstr("second fell")));
    throws = false;
    pipeline.zero_grad();
    pipeline.step(x, torch::zeros_like(x), MSELoss());
    EXPECT_EQ(pipeline.parameters()[0].grad().item<double>(), 15);
  }
}

TEST(StageErrorTest, NamesTheLossAndItsMicroBatch) {
  for (auto mode : {Rematerialize::Always, Rematerialize::Never}) {
    int run = 0;
    Layers layers;
    layers.push_back("a", testing::scale(1));
    layers.push_back("b", testing::scale(1));
    Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = 4, .rematerialize = mode});
    const auto x = testing::column({1, 2, 3, 4});
    const Loss loss([&run](at::Tensor y, at::Tensor) {
      if (run++ == 2)
        throw std::runtime_error("no such word");
      return y.mean();
    });
    const auto error = error_of([&] { pipeline.step(x, x, loss); });
    EXPECT_THAT(error, HasSubstr("stage 1, the loss, micro-batch"));
    EXPECT_THAT(error, HasSubstr("no such word"));
    EXPECT_EQ(error_of([&] { pipeline.step(x, x, loss); }), "");
  }
}

TEST(StageErrorTest, AnErrorOfTheObserverReachesTheCaller) {
  Layers layers;
  layers.push_back("a", testing::scale(1));
  layers.push_back("b", testing::scale(1));
  Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = 2});
  pipeline.observe(
      [](int, const Tensors&, const Tensors&) { throw std::runtime_error("disk is full"); });
  const auto x = testing::column({1, 2});
  EXPECT_THAT(error_of([&] { pipeline.step(x, x, MSELoss()); }), HasSubstr("disk is full"));
  pipeline.observe({});
  EXPECT_EQ(error_of([&] { pipeline.step(x, x, MSELoss()); }), "");
}

TEST(StageErrorTest, ALayerThatTakesOtherTensorsIsNamed) {
  Layers layers;
  layers.push_back("lstm", [] { return torch::nn::LSTM(4, 4); });
  layers.push_back("head", [] { return torch::nn::Linear(4, 2); });
  Pipeline pipeline(layers, {.num_stages = 2});
  const auto error = error_of([&] { pipeline.forward(torch::ones({3, 2, 4})); });
  EXPECT_THAT(error, HasSubstr("stage 1, layer 'head' (index 1), micro-batch 0"));
  EXPECT_THAT(error, HasSubstr("takes 1 tensors and is given 3"));
}

TEST(StageErrorTest, APipelineMayBeDestroyedAfterAnError) {
  for (int run = 0; run < 5; ++run) {
    Trapped trapped(Rematerialize::ExceptLast);
    trapped.trap.forward_at = run;
    EXPECT_NE(error_of([&] { trapped.step(); }), "");
  }
}

}  // namespace
}  // namespace gpipe
