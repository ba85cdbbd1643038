#include "gpipe/core/loss.h"

#include "gpipe/core/micro_batch.h"
#include "tests/testing/check.h"

namespace gpipe {
namespace {

using testing::bit_equal;
using testing::close;
using testing::column;
using testing::error_of;
using ::testing::HasSubstr;
using testing::normal;
using testing::scale;

/// Loss and dL/dw of case 1's model, y = w x with w = 1.
std::pair<double, double> step_of(
    const std::vector<double>& x, int num_micro_batches, const Loss& loss, int num_steps = 1) {
  const auto linear = scale(1);
  Layers layers;
  layers.push_back("scale", linear);
  layers.push_back("same", [](at::Tensor y) { return y; });
  Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = num_micro_batches});
  double value = 0;
  for (int step = 0; step < num_steps; ++step)
    value = pipeline.step(column(x), torch::zeros_like(column(x)), loss).item<double>();
  return {value, linear->weight.grad().item<double>()};
}

TEST(LossTest, WeighsUnevenMicroBatchesByRows) {
  for (int m : {1, 2, 3, 4, 5, 8}) {
    EXPECT_EQ(step_of({1, 2, 3, 4, 5}, m, MSELoss()), std::pair(11.0, 22.0)) << "M=" << m;
    EXPECT_EQ(step_of({1, 2, 3, 4, 5}, m, torch::nn::MSELoss()), std::pair(11.0, 22.0));
  }
}

TEST(LossTest, AddsGradientsOverSteps) {
  for (int m : {1, 2, 4}) {
    EXPECT_EQ(step_of({1, 2, 3, 4}, m, MSELoss(), 1).second, 15);
    EXPECT_EQ(step_of({1, 2, 3, 4}, m, MSELoss(), 2).second, 30);
  }
}

TEST(LossTest, AddsSumsAndAveragesRows) {
  auto squares = [](at::Tensor y, at::Tensor t) { return (y - t).square().sum(1); };
  const Loss sum([](at::Tensor y, at::Tensor t) { return (y - t).square().sum(); }, Reduction::Sum);
  const torch::nn::MSELoss module(torch::nn::MSELossOptions().reduction(torch::kSum));
  for (int m : {1, 2, 3, 5}) {
    EXPECT_EQ(step_of({1, 2, 3, 4, 5}, m, MSELoss(Reduction::Sum)), std::pair(55.0, 110.0));
    EXPECT_EQ(step_of({1, 2, 3, 4, 5}, m, sum), std::pair(55.0, 110.0));
    EXPECT_EQ(step_of({1, 2, 3, 4, 5}, m, module), std::pair(55.0, 110.0));
    EXPECT_EQ(step_of({1, 2, 3, 4, 5}, m, Loss(squares, Reduction::PerRow)), std::pair(11.0, 22.0));
    EXPECT_EQ(step_of({1, 2, 3, 4, 5}, m, MSELoss(Reduction::PerRow)), std::pair(11.0, 22.0));
  }
}

TEST(LossTest, WeighsByTheUsersCount) {
  // The mean over the terms of even rows' values; the count says how many there are.
  const Loss loss(
      [](at::Tensor y, at::Tensor t) { return (y * t).sum() / t.sum().clamp_min(1); },
      Reduction::Mean,
      [](const Tensors& targets) { return targets[0].sum().item<double>(); });
  const auto x = column({1, 2, 3, 4, 5, 6});
  const auto chosen = column({1, 1, 0, 0, 1, 1});
  for (int m : {1, 2, 3, 6}) {
    const auto linear = scale(1);
    Layers layers;
    layers.push_back("scale", linear);
    Pipeline pipeline(layers, {.num_micro_batches = m});
    EXPECT_TRUE(close(pipeline.step(x, chosen, loss), torch::tensor(3.5, torch::kDouble)));
    EXPECT_TRUE(close(linear->weight.grad(), column({3.5})));
  }
}

/// Loss, gradients of weight, bias and input of a linear classifier, by the pipeline.
struct Classified {
  at::Tensor loss;
  std::vector<at::Tensor> gradients;
};

Classified classify(
    const Loss& loss, const at::Tensor& x, const at::Tensor& target, int num_micro_batches) {
  auto linear = testing::exact(torch::nn::Linear(4, 3), 3);
  const at::Tensor input = x.detach().clone().requires_grad_();
  Layers layers;
  layers.push_back("linear", linear);
  Pipeline pipeline(layers, {.num_micro_batches = num_micro_batches});
  const at::Tensor value = pipeline.step(input, target, loss);
  return {value, {linear->weight.grad(), linear->bias.grad(), input.grad()}};
}

Classified classify_plain(
    const std::function<at::Tensor(at::Tensor, at::Tensor)>& loss,
    const at::Tensor& x,
    const at::Tensor& target) {
  auto linear = testing::exact(torch::nn::Linear(4, 3), 3);
  const at::Tensor input = x.detach().clone().requires_grad_();
  const at::Tensor value = loss(linear(input), target);
  value.backward();
  return {value.detach(), {linear->weight.grad(), linear->bias.grad(), input.grad()}};
}

void expect_close(const Classified& actual, const Classified& expected) {
  EXPECT_TRUE(close(actual.loss, expected.loss));
  for (size_t i = 0; i < expected.gradients.size(); ++i) {
    ASSERT_TRUE(actual.gradients[i].defined()) << "gradient " << i;
    EXPECT_TRUE(close(actual.gradients[i], expected.gradients[i])) << "gradient " << i;
  }
}

TEST(LossTest, ReadsIgnoredTargetsAndClassWeightsOfModules) {
  const auto x = normal({7, 4}, 1);
  // With M=4 (rows 2, 2, 2, 1) the second micro-batch has no valid target at all.
  const auto target = torch::tensor({0, 1, -5, -5, 2, -5, 0}, torch::kLong);
  const auto weight = torch::tensor({1.0, 2.0, 0.5}, torch::kDouble);
  const torch::nn::CrossEntropyLoss plain(
      torch::nn::CrossEntropyLossOptions().ignore_index(-5).weight(weight));
  const torch::nn::NLLLoss nll(torch::nn::NLLLossOptions().ignore_index(-5).weight(weight));
  const torch::nn::CrossEntropyLoss sum(
      torch::nn::CrossEntropyLossOptions().ignore_index(-5).reduction(torch::kSum));
  for (int m : {1, 2, 4, 7}) {
    expect_close(classify(plain, x, target, m), classify_plain(plain, x, target));
    expect_close(classify(nll, x, target, m), classify_plain(nll, x, target));
    expect_close(classify(sum, x, target, m), classify_plain(sum, x, target));
    const Loss ours = CrossEntropyLoss({.ignore_index = -5, .weight = weight});
    expect_close(classify(ours, x, target, m), classify_plain(plain, x, target));
  }
}

TEST(LossTest, AveragesTheRowsOfAModuleWithoutReduction) {
  const auto x = normal({7, 4}, 1);
  const auto target = torch::tensor({0, 1, -5, -5, 2, -5, 0}, torch::kLong);
  const torch::nn::CrossEntropyLoss none(
      torch::nn::CrossEntropyLossOptions().ignore_index(-5).reduction(torch::kNone));
  auto mean_of_rows = [&](at::Tensor y, at::Tensor t) {
    return torch::nn::CrossEntropyLoss(none)(y, t).mean();
  };
  for (int m : {1, 2, 4})
    expect_close(classify(none, x, target, m), classify_plain(mean_of_rows, x, target));
}

TEST(LossTest, TakesClassProbabilitiesAndSmoothing) {
  const auto x = normal({7, 4}, 1);
  const auto probabilities = normal({7, 3}, 2).softmax(1);
  const auto target = torch::tensor({0, 1, -100, 2, 2, 1, 0}, torch::kLong);
  const torch::nn::CrossEntropyLoss plain;
  const torch::nn::CrossEntropyLoss smooth(
      torch::nn::CrossEntropyLossOptions().label_smoothing(0.2));
  for (int m : {1, 3, 4}) {
    expect_close(classify(plain, x, probabilities, m), classify_plain(plain, x, probabilities));
    expect_close(classify(smooth, x, target, m), classify_plain(smooth, x, target));
    const Loss ours = CrossEntropyLoss({.label_smoothing = 0.2});
    expect_close(classify(ours, x, target, m), classify_plain(smooth, x, target));
  }
}

TEST(LossTest, CountsTheValidTargetsOfSequences) {
  const auto x = normal({5, 6, 4}, 1);
  auto target = torch::arange(30).remainder(3).view({5, 6});
  target[1].slice(0, 2).fill_(-100);
  target[4].fill_(-100);
  const torch::nn::CrossEntropyLoss plain;
  auto by_words = [&](at::Tensor y, at::Tensor t) {
    return torch::nn::CrossEntropyLoss(plain)(y.movedim(-1, 1), t);
  };
  for (int m : {1, 2, 5})
    expect_close(
        classify(CrossEntropyLoss({.class_dim = -1}), x, target, m),
        classify_plain(by_words, x, target));
}

TEST(LossTest, OffersOtherModulesOfLibTorch) {
  const auto x = normal({7, 4}, 1);
  const auto target = normal({7, 3}, 2).sigmoid();
  const torch::nn::L1Loss l1;
  const torch::nn::BCEWithLogitsLoss bce;
  const torch::nn::HuberLoss huber;
  const torch::nn::KLDivLoss kl(torch::nn::KLDivLossOptions().reduction(torch::kBatchMean));
  for (int m : {1, 3}) {
    expect_close(classify(l1, x, target, m), classify_plain(l1, x, target));
    expect_close(classify(bce, x, target, m), classify_plain(bce, x, target));
    expect_close(classify(huber, x, target, m), classify_plain(huber, x, target));
    expect_close(classify(kl, x, target, m), classify_plain(kl, x, target));
  }
}

TEST(LossTest, RefusesWhatIsNoScalar) {
  auto error = [](const Loss& loss) { return error_of([&] { step_of({1, 2, 3, 4}, 2, loss); }); };
  const auto matrix = error([](at::Tensor y, at::Tensor t) { return y - t; });
  EXPECT_THAT(matrix, HasSubstr("the loss"));
  EXPECT_THAT(matrix, HasSubstr("[2, 1]"));
  EXPECT_THAT(matrix, HasSubstr("must return a scalar"));
  EXPECT_THAT(
      error({[](at::Tensor y, at::Tensor t) { return (y - t).sum(); }, Reduction::PerRow}),
      HasSubstr("one value for each of 2 rows"));
  EXPECT_THAT(error([](at::Tensor, at::Tensor) { return at::Tensor(); }), HasSubstr("undefined"));
  EXPECT_THAT(
      error([](at::Tensor y, at::Tensor) { return y.detach().sum(); }), HasSubstr("detach"));
}

TEST(LossTest, RefusesABatchInWhichNothingCounts) {
  const auto target = torch::full({4}, -100, torch::kLong);
  EXPECT_THAT(
      error_of([&] { classify(CrossEntropyLoss(), normal({4, 4}, 1), target, 2); }),
      HasSubstr("no target of the mini-batch counts"));
}

TEST(MicroBatchTest, PiecesDifferByOneRowAtMost) {
  EXPECT_EQ(split_rows(5, 2), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(split_rows(8, 4), (std::vector<int64_t>{2, 2, 2, 2}));
  EXPECT_EQ(split_rows(11, 4), (std::vector<int64_t>{3, 3, 3, 2}));
  EXPECT_EQ(split_rows(3, 8), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_THAT(error_of([] { split_rows(0, 8); }), HasSubstr("0 rows cannot be split into 8"));
}

TEST(MicroBatchTest, MergeIsTheInverseOfSplit) {
  const Tensors all{normal({5, 2}, 1), at::Tensor(), torch::arange(5)};
  const auto pieces = split(all, split_rows(5, 3));
  ASSERT_EQ(pieces.size(), 3);
  EXPECT_EQ(pieces[0][0].size(0), 2);
  EXPECT_TRUE(pieces[0][0].is_alias_of(all[0]));
  EXPECT_TRUE(bit_equal(merge(pieces), all));
}

TEST(MicroBatchTest, RefusesWhatCannotBeJoined) {
  const at::Tensor rows = torch::ones({2, 1});
  const at::Tensor scalar = torch::ones({});
  EXPECT_THAT(error_of([&] { merge({{scalar}, {scalar}}); }), HasSubstr("is a scalar"));
  EXPECT_THAT(error_of([&] { merge({{rows}, {at::Tensor()}}); }), HasSubstr("undefined in 1 of 2"));
}

TEST(MicroBatchTest, RefusesInputsOfDifferentRows) {
  const auto x = torch::ones({6, 4, 2});
  const auto error = error_of([&] { common_rows({x}, {torch::ones({4})}); });
  EXPECT_THAT(error, HasSubstr("target 0 has 4 rows"));
  EXPECT_THAT(error, HasSubstr("input 0 has 6"));
  EXPECT_THAT(error_of([&] { common_rows({x, torch::ones({})}, {}); }), HasSubstr("input 1"));
  EXPECT_THAT(error_of([&] { common_rows({at::Tensor()}, {}); }), HasSubstr("no input is defined"));
  EXPECT_EQ(common_rows({at::Tensor(), x}, {at::Tensor()}), 6);
}

}  // namespace
}  // namespace gpipe
