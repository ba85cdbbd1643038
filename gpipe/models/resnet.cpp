#include "gpipe/models/resnet.h"

#include <ATen/Functions.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <string>

#include "gpipe/base/error.h"
#include "gpipe/models/convolution.h"

namespace gpipe::models {

namespace {

constexpr int64_t kExpansion = 4;

struct BottleneckOptions {
  int64_t in_channels = 0;
  int64_t width = 0;
  int64_t stride = 1;

  int64_t out_channels() const { return kExpansion * width; }
};

class BottleneckImpl : public torch::nn::Cloneable<BottleneckImpl> {
 public:
  explicit BottleneckImpl(const BottleneckOptions& options) : options_(options) {
    BottleneckImpl::reset();
  }

  void reset() override {
    const auto [in, width, stride] = options_;
    const int64_t out = options_.out_channels();
    conv1_ = register_module("conv1", Convolution(ConvolutionOptions{in, width}));
    bn1_ = register_module("bn1", torch::nn::BatchNorm2d(width));
    conv2_ = register_module("conv2", Convolution(ConvolutionOptions{width, width, 3, 3, stride}));
    bn2_ = register_module("bn2", torch::nn::BatchNorm2d(width));
    conv3_ = register_module("conv3", Convolution(ConvolutionOptions{width, out}));
    bn3_ = register_module("bn3", torch::nn::BatchNorm2d(out));
    if (stride != 1 || in != out) {
      downsample_ = register_module(
          "downsample",
          torch::nn::Sequential(
              Convolution(ConvolutionOptions{in, out, 1, 1, stride}), torch::nn::BatchNorm2d(out)));
    }
  }

  at::Tensor forward(const at::Tensor& input) {  // [batch, channel, height, width]
    at::Tensor value = bn1_(conv1_(input)).relu_();
    value = bn2_(conv2_(value)).relu_();
    value = bn3_(conv3_(value));
    value += downsample_ ? downsample_->forward(input) : input;
    return value.relu_();
  }

 private:
  BottleneckOptions options_;
  Convolution conv1_{nullptr};
  Convolution conv2_{nullptr};
  Convolution conv3_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr};
  torch::nn::BatchNorm2d bn2_{nullptr};
  torch::nn::BatchNorm2d bn3_{nullptr};
  torch::nn::Sequential downsample_{nullptr};
};
TORCH_MODULE(Bottleneck);

void add_stem(Layers& layers, const ResNetOptions& options) {
  const int64_t kernel = options.small_images ? 3 : 7;
  const int64_t stride = options.small_images ? 1 : 2;
  const ConvolutionOptions convolution{
      options.in_channels, options.width, kernel, kernel, stride, options.channels_last};
  layers.push_back("conv1", [convolution] { return Convolution(convolution); });
  layers.push_back("bn1", [width = options.width] { return torch::nn::BatchNorm2d(width); });
  if (options.small_images) {
    layers.push_back("relu", [](const at::Tensor& x) { return x.relu(); });
  } else {
    layers.push_back(
        "maxpool", [](const at::Tensor& x) { return at::max_pool2d(x.relu(), 3, 2, 1); });
  }
}

void check(const ResNetOptions& options) {
  for (int64_t count : options.num_blocks)
    GPIPE_CHECK(
        count >= 1, "[resnet] num_blocks holds ", count, "; each of the four must be at least 1");
  GPIPE_CHECK(
      options.width >= 1 && options.num_classes >= 1 && options.in_channels >= 1,
      "[resnet] width = ",
      options.width,
      ", num_classes = ",
      options.num_classes,
      ", in_channels = ",
      options.in_channels,
      "; all must be at least 1");
}

}  // namespace

Layers resnet(const ResNetOptions& options) {
  check(options);
  Layers layers;
  add_stem(layers, options);
  BottleneckOptions block{options.width, options.width, 1};
  for (size_t group = 0; group < options.num_blocks.size(); ++group) {
    block.width = options.width << group;
    block.stride = group == 0 ? 1 : 2;
    for (int64_t i = 0; i < options.num_blocks[group]; ++i) {
      layers.push_back("layer" + std::to_string(group + 1) + "." + std::to_string(i), [block] {
        return Bottleneck(block);
      });
      block.in_channels = block.out_channels();
      block.stride = 1;
    }
  }
  layers.push_back("avgpool", [](const at::Tensor& x) { return x.mean({2, 3}); });
  layers.push_back("fc", [in = block.in_channels, classes = options.num_classes] {
    return torch::nn::Linear(in, classes);
  });
  return layers;
}

Layers resnet_50(ResNetOptions options) {
  options.num_blocks = {3, 4, 6, 3};
  return resnet(options);
}

Layers resnet_101(ResNetOptions options) {
  options.num_blocks = {3, 4, 23, 3};
  return resnet(options);
}

}  // namespace gpipe::models
