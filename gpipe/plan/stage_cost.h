#pragma once

#include <cstdint>
#include <vector>

#include "gpipe/plan/cost.h"
#include "gpipe/plan/partition.h"

namespace gpipe::plan {

/// What one stage costs for one micro-batch.
struct StageCost {
  double forward_seconds = 0;
  double backward_seconds = 0;         ///< B, without a recompute
  double backward_input_seconds = 0;   ///< I
  double backward_weight_seconds = 0;  ///< W
  double recompute_seconds = 0;        ///< R
  std::int64_t input_bytes = 0;        ///< kept from F to B, and the gradient sent back is as large
  std::int64_t output_bytes = 0;       ///< sent to the next stage
  std::int64_t activation_bytes = 0;   ///< kept inside with a stored graph
};

/// The stages' costs as sums over their layers, with times divided by the speed of the device. I
/// and W take half of B each, R takes as long as F. `devices` is empty (speed 1), or has one for
/// each stage; throws Error where it has not, or the partition has another number of layers.
std::vector<StageCost> stage_costs(
    const CostTable& table,
    const Partition& partition,
    const std::vector<DeviceSpec>& devices = {});

/// `num_stages` times the same cost: F, B = I + W, and R = F, without bytes.
std::vector<StageCost> uniform_stage_costs(
    int num_stages, double forward_seconds, double backward_seconds);

}  // namespace gpipe::plan
