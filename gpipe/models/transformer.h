#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "gpipe/core/layer.h"

namespace gpipe::models {

/// A decoder-only Transformer language model. The defaults are those of GPipe, Table 1, at L = 3.
struct TransformerOptions {
  int64_t num_layers = 3;
  int64_t model_dimension = 2048;
  int64_t feed_forward_dimension = 8192;
  /// Divides model_dimension.
  int64_t num_heads = 32;
  int64_t vocabulary = 32000;
  /// Probability with which an element of the embedded input, and of what a sub-layer adds, is
  /// dropped.
  double dropout = 0;
  /// Logits beyond this magnitude are clipped to it (GPipe, section 5: against instability of deep
  /// models). 0: none are.
  double clip_logits = 0;
};

/// The model as layers: embedding, a layer for each block, head. Input int64 ids [batch, position]
/// of any length, output logits [batch, position, vocabulary]. Each block is causal: attention and
/// a feed-forward network with ReLU, both behind a layer norm and around a residual. The weights of
/// the feed-forward networks start num_layers times smaller than usual (GPipe, section 5). Throws
/// Error for options that do not fit each other.
///
/// All linear layers have biases; embedding and head are not tied, so with dimension d,
/// feed-forward dimension f and vocabulary v there are
/// L * (4 d d + 2 d f + 9 d + f) + 2 v d + v + 2 d parameters (Table 1: 282.2 M at L = 3, 785.8 M
/// at 13, 5.3 B at 103, 21.0 B at 415, 83.9 B at 1663).
Layers transformer(const TransformerOptions& options);

/// Sines and cosines of the positions, in geometrically spaced frequencies (Vaswani et al., arXiv
/// 1706.03762, section 3.5): the first half of a row sines, the second cosines. Computed at each
/// call. `dimension` is even.
at::Tensor sinusoidal_positions(
    int64_t num_positions,
    int64_t dimension,
    const at::TensorOptions& options);  // [position, dimension]

}  // namespace gpipe::models
