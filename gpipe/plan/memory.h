#pragma once

#include <cstdint>
#include <vector>

#include "gpipe/plan/lower.h"
#include "gpipe/plan/stage_cost.h"

namespace gpipe::plan {

/// What a stage keeps for backwards still to come, at its peak within a step.
struct InFlightPeak {
  int micro_batches = 0;  ///< between their F and the end of their B (or W)
  int graphs = 0;         ///< those of them with a stored graph
  std::int64_t bytes = 0;

  bool operator==(const InFlightPeak&) const = default;
};

/// The peaks of each stage, by the lifetimes that the programs give: [num_stages]. A micro-batch
/// keeps the stage's input from F to the end of B (or W). Its activations are kept from F on where
/// the program has no R for it, else from R on. So fill-drain with re-materialization peaks at
/// M * input + activations, 1F1B without at min(M, K - stage) * (input + activations).
///
/// The peaks do not depend on times: a stage's actions run in the order of its rank. Received
/// values not yet used, and what operators need while they run, are not counted. Throws Error where
/// the programs have more stages than `stages`.
std::vector<InFlightPeak> in_flight_peaks(
    const std::vector<Program>& programs, const std::vector<StageCost>& stages);

}  // namespace gpipe::plan
