#include "gpipe/models/convolution.h"

#include <ATen/Functions.h>
#include <torch/nn/init.h>

#include <ostream>

namespace gpipe::models {

ConvolutionImpl::ConvolutionImpl(const ConvolutionOptions& options) : options_(options) {
  reset();
}

void ConvolutionImpl::reset() {
  weight_ = register_parameter(
      "weight",
      at::empty(
          {options_.out_channels,
           options_.in_channels,
           options_.kernel_height,
           options_.kernel_width}));
  torch::nn::init::kaiming_normal_(weight_, 0, torch::kFanOut, torch::kReLU);
}

void ConvolutionImpl::pretty_print(std::ostream& stream) const {
  stream << "gpipe::models::Convolution(" << options_.in_channels << ", " << options_.out_channels
         << ", kernel " << options_.kernel_height << " x " << options_.kernel_width << ", stride "
         << options_.stride << ")";
}

at::Tensor ConvolutionImpl::forward(const at::Tensor& input) {
  if (!options_.to_channels_last)
    return forward_any(input);
  // An image of one channel counts as laid out both ways, so the output is asked as well.
  constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;
  return forward_any(input.contiguous(kChannelsLast)).contiguous(kChannelsLast);
}

bool ConvolutionImpl::is_pointwise() const {
  return options_.kernel_height == 1 && options_.kernel_width == 1;
}

at::Tensor ConvolutionImpl::forward_any(const at::Tensor& input) const {
  if (is_pointwise() && input.is_cpu() && input.is_contiguous(at::MemoryFormat::ChannelsLast))
    return forward_pointwise(input);
  const auto stride_along = [this](int64_t kernel) {
    return is_pointwise() || kernel > 1 ? options_.stride : 1;
  };
  return at::conv2d(
      input,
      weight_,
      {},
      {stride_along(options_.kernel_height), stride_along(options_.kernel_width)},
      {options_.kernel_height / 2, options_.kernel_width / 2});
}

at::Tensor ConvolutionImpl::forward_pointwise(const at::Tensor& input) const {
  at::Tensor rows = input.permute({0, 2, 3, 1});  // [batch, height, width, channel]
  if (options_.stride > 1)
    rows = rows.slice(1, 0, {}, options_.stride).slice(2, 0, {}, options_.stride).contiguous();
  const at::Tensor matrix = weight_.view({options_.out_channels, options_.in_channels});
  return at::linear(rows, matrix).permute({0, 3, 1, 2});
}

ConvolutionNormImpl::ConvolutionNormImpl(const ConvolutionOptions& options) : options_(options) {
  reset();
}

void ConvolutionNormImpl::reset() {
  convolution_ = register_module("conv", Convolution(options_));
  norm_ = register_module("norm", torch::nn::BatchNorm2d(options_.out_channels));
}

at::Tensor ConvolutionNormImpl::forward(const at::Tensor& input) {
  return norm_(convolution_(input));
}

}  // namespace gpipe::models
