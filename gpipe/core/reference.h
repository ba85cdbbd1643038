#pragma once

#include <cstdint>
#include <optional>

#include "gpipe/core/layer.h"
#include "gpipe/core/loss.h"

namespace gpipe {

/// How the reference runs.
struct ReferenceOptions {
  int num_micro_batches = 1;
  /// Order in which gradients are accumulated: last micro-batch first (fill-drain), or first to last (1F1B).
  bool last_first = true;
  uint64_t seed = 0;
  int64_t step = 0;
  std::optional<c10::ScalarType> autocast = std::nullopt;
  double gradient_scale = 1;
};

/// REF-MB, what every pipelined step is compared with: the unpartitioned layers on the calling thread under plain autograd,
/// the same micro-batches in the same order, inside gpipe's scopes for random keys and BatchNorm. Adds gradients to `.grad`
/// of parameters (and of inputs that require one) and returns the loss of the mini-batch. The layers must be built.
at::Tensor reference_step(
    const Layers& layers,
    const Values& inputs,
    const Values& targets,
    const Loss& loss,
    const ReferenceOptions& options);

}  // namespace gpipe
