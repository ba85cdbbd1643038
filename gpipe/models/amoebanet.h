#pragma once

#include <cstdint>

#include "gpipe/core/layer.h"

namespace gpipe::models {

/// AmoebaNet-D (L, D) for images. The defaults are those of 224 x 224 images; `fashion_mnist()`
/// keeps more of a small image.
struct AmoebaNetOptions {
  /// L: normal cells, a third of them on each of three image sizes. A multiple of 3.
  int64_t num_layers = 18;
  /// D: channels of a state in the first normal cells; doubled at each reduction after them.
  int64_t num_filters = 208;
  int64_t num_classes = 1000;
  int64_t in_channels = 3;
  /// The stem's convolution and its reduction cells shrink the image
  /// stem_stride * 2^stem_reductions times before the first normal cell.
  int64_t stem_stride = 2;
  int64_t stem_reductions = 2;
  /// Probability with which a feature is dropped before the classifier.
  double dropout = 0;
  /// Keeps activations in channels-last memory, which is faster on the CPU. The values differ by
  /// rounding only.
  bool channels_last = true;

  /// One channel, 28 x 28, 10 classes: normal cells at 14 x 14, 7 x 7 and 4 x 4.
  static AmoebaNetOptions fashion_mnist();
};

/// AmoebaNet-D as layers: stem, a layer for each cell, classifier. Between them pass two tensors:
/// the outputs of the last two cells. Input float [batch, in channel, height, width], output logits
/// [batch, class]. Throws Error for options that do not fit each other.
///
/// Parameters (GPipe, Table 1): (18, 208) 81.5 M, (18, 416) 319.0 M, (18, 544) 542.7 M,
/// (36, 544) 1.06 B, (72, 512) 1.84 B.
Layers amoebanet_d(const AmoebaNetOptions& options);

}  // namespace gpipe::models
