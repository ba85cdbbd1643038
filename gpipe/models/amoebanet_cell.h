#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <tuple>

#include "gpipe/models/amoebanet_genotype.h"
#include "gpipe/models/convolution.h"

namespace gpipe::models {

/// One operation of a cell, with its parameters.
class AmoebaNetOperationImpl : public torch::nn::Cloneable<AmoebaNetOperationImpl> {
 public:
  /// `stride` is 1 for None.
  AmoebaNetOperationImpl(CellOperation operation, int64_t channels, int64_t stride);

  void reset() override;

  /// Convolutions read `rectified`, the state after ReLU; the others read `state`. Returns `state`
  /// itself for None, else a new tensor whose values no gradient needs.
  at::Tensor forward(const at::Tensor& state, const at::Tensor& rectified);

  bool is_none() const { return operation_ == CellOperation::None; }
  bool reads_rectified() const { return operation_ >= CellOperation::Convolution1x1; }

 private:
  at::Tensor convolve(const at::Tensor& rectified);

  CellOperation operation_;
  int64_t channels_;
  int64_t stride_;
  torch::nn::ModuleList chain_{nullptr};
};
TORCH_MODULE(AmoebaNetOperation);

/// Halves an image without losing the odd pixels: half of the channels are made of the even rows
/// and columns, half of the odd ones.
class FactorizedReductionImpl : public torch::nn::Cloneable<FactorizedReductionImpl> {
 public:
  FactorizedReductionImpl(int64_t in_channels, int64_t out_channels);

  void reset() override;

  // [batch, channel, height, width] -> [batch, channel, ceil(height / 2), ceil(width / 2)]
  at::Tensor forward(const at::Tensor& rectified);

 private:
  int64_t in_channels_;
  int64_t out_channels_;
  Convolution even_{nullptr};
  Convolution odd_{nullptr};
  torch::nn::BatchNorm2d norm_{nullptr};
};
TORCH_MODULE(FactorizedReduction);

struct AmoebaNetCellOptions {
  int64_t previous_channels = 0;
  int64_t before_previous_channels = 0;
  /// Of each state; the output has as many times more as the genotype concatenates states.
  int64_t channels = 0;
  bool is_reduction = false;
  /// The previous cell was a reduction, so that the image before it is twice as large.
  bool follows_reduction = false;

  const CellGenotype& genotype() const { return is_reduction ? kReductionCell : kNormalCell; }
  int64_t output_channels() const {
    return channels * static_cast<int64_t>(genotype().num_outputs);
  }
};

/// A cell of AmoebaNet-D: takes the outputs of the two cells before it, and returns its own and the
/// previous one, as the next cell takes them.
class AmoebaNetCellImpl : public torch::nn::Cloneable<AmoebaNetCellImpl> {
 public:
  explicit AmoebaNetCellImpl(const AmoebaNetCellOptions& options);

  void reset() override;

  /// The first cell after the stem has only `previous`, and reads it for both. Both arguments and
  /// results are [batch, channel, height, width].
  std::tuple<at::Tensor, at::Tensor> forward(
      const at::Tensor& previous, const at::Tensor& before_previous);

 private:
  at::Tensor fit_before_previous(const at::Tensor& before_previous);

  AmoebaNetCellOptions options_;
  ConvolutionNorm previous_{nullptr};
  ConvolutionNorm before_previous_{nullptr};
  FactorizedReduction reduction_{nullptr};
  torch::nn::ModuleList operations_{nullptr};
};
TORCH_MODULE(AmoebaNetCell);

}  // namespace gpipe::models
