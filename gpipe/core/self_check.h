#pragma once

#include <string>

#include "gpipe/core/layer.h"
#include "gpipe/core/loss.h"
#include "gpipe/core/pipeline.h"

namespace gpipe {

struct SelfCheckReport {
  bool ok = true;
  int layer = -1;  ///< first layer that differs; -1 where none does
  std::string layer_name;
  std::string difference;  ///< what differs: `loss`, `recompute`, `gradient of weight`, `buffer
                           ///< running_mean`, ...
  std::string to_string() const;
};

/// Compares, bit for bit, one pipelined step with plain autograd over the unpartitioned layers
/// (REF-MB), and every layer's recompute with its forward: finds modules that depend on more than
/// their inputs, parameters and random key. Leaves parameters, gradients and buffers as they were.
SelfCheckReport self_check(
    Layers layers,
    PipelineOptions options,
    const Values& inputs,
    const Values& targets,
    const Loss& loss);

}  // namespace gpipe
