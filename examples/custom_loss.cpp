// Losses of one's own: targets that are missing, and one value for each row. The loss and the gradient of a step are
// those of the whole mini-batch, however it is split.
//
//   cmake --build build/release --target example_custom_loss && build/release/examples/custom_loss
//
// Prints for M = 1, 2, 3 and 5 the same loss and gradient: 8 and 3 for the first loss, 11 and 22 for the second.
#include <gpipe/gpipe.h>
#include <torch/nn.h>

#include <cmath>
#include <iostream>
#include <limits>

namespace {

/// Mean absolute error over the targets that are there; the others are NaN. `count` tells how many terms the mean of a
/// micro-batch has, which is what micro-batches are weighted by.
gpipe::Loss masked_l1() {
  const auto loss = [](at::Tensor y, at::Tensor target) {
    const at::Tensor is_there = target.isnan().logical_not();
    const at::Tensor error = (y - target.nan_to_num(0)).abs();
    return error.where(is_there, 0).sum() / is_there.sum();
  };
  const auto count = [](const gpipe::Tensors& targets) {
    return targets.front().isnan().logical_not().sum().item<double>();
  };
  return gpipe::Loss(loss, gpipe::Reduction::Mean, count);
}

/// Squared error, one value for each row: [rows].
gpipe::Loss per_row_square() {
  const auto loss = [](at::Tensor y, at::Tensor target) {
    return (y - target).square().flatten(1).mean(1);
  };
  return gpipe::Loss(loss, gpipe::Reduction::PerRow);
}

struct Result {
  double loss;
  double gradient;
};

/// One step of y = w * x with w = 1 over x = 1, 2, 3, 4, 5.
Result step(const at::Tensor& target, const gpipe::Loss& loss, int num_micro_batches) {
  torch::nn::Linear linear(torch::nn::LinearOptions(1, 1).bias(false));
  linear->to(torch::kDouble);
  torch::nn::init::ones_(linear->weight);
  gpipe::Layers layers;
  layers.push_back("linear", linear);
  gpipe::Pipeline pipeline(layers, {.num_micro_batches = num_micro_batches});
  const at::Tensor x = torch::arange(1, 6, torch::kDouble).unsqueeze(1);
  const double value = pipeline.step(x, target, loss).item<double>();
  return {value, linear->weight.grad().item<double>()};
}

/// Whether the result is the same for every M.
bool show(const char* name, const at::Tensor& target, const gpipe::Loss& loss) {
  const Result whole = step(target, loss, 1);
  bool is_same = true;
  for (int num_micro_batches : {1, 2, 3, 5}) {
    const Result split = step(target, loss, num_micro_batches);
    std::cout << name << ", M = " << num_micro_batches << ": loss " << split.loss << ", gradient "
              << split.gradient << '\n';
    is_same = is_same && std::abs(split.loss - whole.loss) < 1e-12 &&
              std::abs(split.gradient - whole.gradient) < 1e-12;
  }
  return is_same;
}

}  // namespace

int main() {
  constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
  // Of the micro-batches at M = 5, two have no target at all and weigh nothing.
  const at::Tensor some = torch::tensor({-7.0, kMissing, -3.0, kMissing, -5.0}).unsqueeze(1);
  const at::Tensor zeros = torch::zeros({5, 1}, torch::kDouble);
  const bool is_right = show("masked L1", some.to(torch::kDouble), masked_l1());
  return show("square per row", zeros, per_row_square()) && is_right ? 0 : 1;
}
