#pragma once

#include <array>
#include <cstdint>

#include "gpipe/core/layer.h"

namespace gpipe::models {

/// A ResNet of bottleneck blocks (He et al., arXiv 1512.03385), with the stride in the 3 x 3
/// convolution. The defaults are ResNet-50 for 224 x 224 images.
struct ResNetOptions {
  /// Number of blocks at each of four image sizes.
  std::array<int64_t, 4> num_blocks = {3, 4, 6, 3};
  /// Channels inside the first blocks; a block returns four times as many.
  int64_t width = 64;
  int64_t num_classes = 1000;
  int64_t in_channels = 3;
  /// Begins with a 3 x 3 convolution of stride 1 and no pooling, for images of about 32 x 32.
  bool small_images = false;
  /// Keeps activations in channels-last memory, which is faster on the CPU. The values differ by
  /// rounding only.
  bool channels_last = true;
};

/// ResNet as layers, a block each. Input float [batch, in channel, height, width], output logits
/// [batch, class]. Layers and parameters are named as in torchvision, layer by layer:
/// `layer1.0` + `.` + `conv1.weight`. Throws Error for counts below 1.
///
/// Parameters: 25.557 M with {3, 4, 6, 3} blocks, 44.549 M with {3, 4, 23, 3}.
Layers resnet(const ResNetOptions& options);

/// Sets num_blocks to those of ResNet-50 and ResNet-101.
Layers resnet_50(ResNetOptions options = {});
Layers resnet_101(ResNetOptions options = {});

}  // namespace gpipe::models
