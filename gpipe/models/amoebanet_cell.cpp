#include "gpipe/models/amoebanet_cell.h"

#include <ATen/Functions.h>

#include <array>
#include <string>
#include <vector>

namespace gpipe::models {

namespace {

std::vector<ConvolutionOptions> convolutions(
    CellOperation operation, int64_t channels, int64_t stride) {
  const int64_t narrow = channels / 4;
  switch (operation) {
    case CellOperation::Convolution1x1:
      return {{channels, channels, 1, 1, stride}};
    case CellOperation::Convolution3x3:
      return {{channels, narrow}, {narrow, narrow, 3, 3, stride}, {narrow, channels}};
    case CellOperation::Convolution1x7And7x1:
      return {
          {channels, narrow},
          {narrow, narrow, 1, 7, stride},
          {narrow, narrow, 7, 1, stride},
          {narrow, channels}};
    default:
      return {};
  }
}

/// Windows that leave the image are cut, so that odd sizes are halved upwards by all operations.
at::Tensor pool(CellOperation operation, const at::Tensor& state, int64_t stride) {
  switch (operation) {
    case CellOperation::AveragePool3x3:
      return at::avg_pool2d(state, 3, stride, 1, false, false);
    case CellOperation::MaxPool2x2:
      return at::max_pool2d(state, 2, stride, 0, 1, true);
    case CellOperation::MaxPool3x3:
      return at::max_pool2d(state, 3, stride, 1);
    default:
      return state;
  }
}

/// a + b, written into one of them that is not a state.
at::Tensor add(
    const AmoebaNetOperation& first, at::Tensor a, const AmoebaNetOperation& second, at::Tensor b) {
  if (!first->is_none())
    return a.add_(b);
  return second->is_none() ? a + b : b.add_(a);
}

}  // namespace

AmoebaNetOperationImpl::AmoebaNetOperationImpl(
    CellOperation operation, int64_t channels, int64_t stride)
    : operation_(operation), channels_(channels), stride_(stride) {
  reset();
}

void AmoebaNetOperationImpl::reset() {
  chain_ = register_module("chain", torch::nn::ModuleList());
  for (const ConvolutionOptions& options : convolutions(operation_, channels_, stride_))
    chain_->push_back(ConvolutionNorm(options));
}

at::Tensor AmoebaNetOperationImpl::forward(const at::Tensor& state, const at::Tensor& rectified) {
  return reads_rectified() ? convolve(rectified) : pool(operation_, state, stride_);
}

at::Tensor AmoebaNetOperationImpl::convolve(const at::Tensor& rectified) {
  at::Tensor value = chain_->ptr<ConvolutionNormImpl>(0)->forward(rectified);
  for (size_t i = 1; i < chain_->size(); ++i)
    value = chain_->ptr<ConvolutionNormImpl>(i)->forward(value.relu_());
  return value;
}

FactorizedReductionImpl::FactorizedReductionImpl(int64_t in_channels, int64_t out_channels)
    : in_channels_(in_channels), out_channels_(out_channels) {
  reset();
}

void FactorizedReductionImpl::reset() {
  const ConvolutionOptions half{in_channels_, out_channels_ / 2, 1, 1, 2};
  even_ = register_module("even", Convolution(half));
  odd_ = register_module("odd", Convolution(half));
  norm_ = register_module("norm", torch::nn::BatchNorm2d(out_channels_));
}

at::Tensor FactorizedReductionImpl::forward(const at::Tensor& rectified) {
  // Shifted by one pixel, with a border of zeros that only odd sizes reach.
  const at::Tensor shifted = at::constant_pad_nd(rectified, {-1, 1, -1, 1});
  return norm_(at::cat({even_(rectified), odd_(shifted)}, 1));
}

AmoebaNetCellImpl::AmoebaNetCellImpl(const AmoebaNetCellOptions& options) : options_(options) {
  reset();
}

void AmoebaNetCellImpl::reset() {
  const auto& [previous, before_previous, channels, is_reduction, follows_reduction] = options_;
  previous_ = register_module("previous", ConvolutionNorm(ConvolutionOptions{previous, channels}));
  if (follows_reduction) {
    reduction_ = register_module("before_previous", FactorizedReduction(before_previous, channels));
  } else if (before_previous != channels) {
    before_previous_ = register_module(
        "before_previous", ConvolutionNorm(ConvolutionOptions{before_previous, channels}));
  }
  operations_ = register_module("operations", torch::nn::ModuleList());
  for (const CellStep& step : options_.genotype().steps) {
    const int64_t stride = is_reduction && step.state < 2 ? 2 : 1;
    operations_->push_back(AmoebaNetOperation(step.operation, channels, stride));
  }
}

std::tuple<at::Tensor, at::Tensor> AmoebaNetCellImpl::forward(
    const at::Tensor& previous, const at::Tensor& before_previous) {
  const CellGenotype& genotype = options_.genotype();
  std::array<at::Tensor, CellGenotype::kNumStates> states{
      previous_(previous.relu()),
      fit_before_previous(before_previous.defined() ? before_previous : previous)};
  std::array<at::Tensor, CellGenotype::kNumStates> rectified;

  const auto run = [&](size_t index) {
    const auto state = static_cast<size_t>(genotype.steps[index].state);
    auto operation = operations_->ptr<AmoebaNetOperationImpl>(index);
    if (operation->reads_rectified() && !rectified[state].defined())
      rectified[state] = states[state].relu();
    return std::pair(
        AmoebaNetOperation(operation), operation->forward(states[state], rectified[state]));
  };
  for (size_t state = 2; state < states.size(); ++state) {
    auto [first, a] = run(2 * state - 4);
    auto [second, b] = run(2 * state - 3);
    states[state] = add(first, a, second, b);
  }

  std::vector<at::Tensor> outputs;
  for (size_t i = 0; i < genotype.num_outputs; ++i)
    outputs.push_back(states[static_cast<size_t>(genotype.outputs[i])]);
  return {at::cat(outputs, 1), previous};
}

at::Tensor AmoebaNetCellImpl::fit_before_previous(const at::Tensor& before_previous) {
  if (reduction_)
    return reduction_(before_previous.relu());
  return before_previous_ ? before_previous_(before_previous.relu()) : before_previous;
}

}  // namespace gpipe::models
