#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

namespace gpipe::models {

/// A two-dimensional convolution without bias, padded so that stride 1 keeps the size.
struct ConvolutionOptions {
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t kernel_height = 1;
  int64_t kernel_width = 1;
  /// Along the directions in which the kernel is longer than 1; along both for a 1 x 1 kernel.
  int64_t stride = 1;
  /// Puts input and output into channels-last memory: for the first layer of a network, whose other
  /// layers keep what they find.
  bool to_channels_last = false;
};

/// Gives the values of torch::nn::Conv2d. On a CPU a 1 x 1 kernel over channels-last memory is one
/// matrix product over the channels, which LibTorch would not choose for fewer than 16 rows.
class ConvolutionImpl : public torch::nn::Cloneable<ConvolutionImpl> {
 public:
  explicit ConvolutionImpl(const ConvolutionOptions& options);

  /// Draws the weight from a normal distribution of variance 2 / (out_channels * kernel area).
  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  at::Tensor forward(const at::Tensor& input);  // [batch, channel, height, width], also returned

 private:
  bool is_pointwise() const;
  at::Tensor forward_pointwise(const at::Tensor& input) const;
  at::Tensor forward_any(const at::Tensor& input) const;

  ConvolutionOptions options_;
  at::Tensor weight_;  // [out channel, in channel, kernel height, kernel width]
};
TORCH_MODULE(Convolution);

/// A convolution followed by batch normalisation.
class ConvolutionNormImpl : public torch::nn::Cloneable<ConvolutionNormImpl> {
 public:
  explicit ConvolutionNormImpl(const ConvolutionOptions& options);

  void reset() override;

  /// The result is newly allocated, and no gradient needs its values: it may be written to.
  at::Tensor forward(const at::Tensor& input);  // [batch, channel, height, width], also returned

 private:
  ConvolutionOptions options_;
  Convolution convolution_{nullptr};
  torch::nn::BatchNorm2d norm_{nullptr};
};
TORCH_MODULE(ConvolutionNorm);

}  // namespace gpipe::models
