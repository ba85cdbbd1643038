#pragma once

#include "gpipe/core/layer.h"
#include "gpipe/core/loss.h"
#include "gpipe/plan/cost.h"

namespace gpipe {

struct ProfileOptions {
  int num_repeats = 5;  ///< timed runs of each layer, after one that is not
  int num_threads = 1;  ///< intra-op threads, as the stages will have
  uint64_t seed = 0;
  std::optional<c10::ScalarType> autocast = std::nullopt;
};

/// Measures every layer on one micro-batch: median forward and backward seconds, parameters, bytes
/// of outputs and of what a stored graph keeps (the latter with the metered allocator only). Leaves
/// parameters, gradients, buffers, modes and generators as they were. The layers are built.
plan::CostTable profile(
    Layers& layers, const Values& micro_batch, const ProfileOptions& options = {});

}  // namespace gpipe
