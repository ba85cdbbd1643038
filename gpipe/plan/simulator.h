#pragma once

#include <vector>

#include "gpipe/plan/lower.h"
#include "gpipe/plan/memory.h"
#include "gpipe/plan/stage_cost.h"
#include "gpipe/plan/timeline.h"

namespace gpipe::plan {

/// A step as the costs predict it.
struct Simulation {
  /// One span for each action of each program, in the program's order. A receive's span is the
  /// waiting for its message; a send's is empty.
  Timeline timeline;
  double step_seconds = 0;
  double bubble_ratio = 0;
  /// What each stage keeps: [num_stages].
  std::vector<InFlightPeak> peaks;
};

/// Runs the programs over the costs of the stages [num_stages]: the first of the two interpreters
/// of a lowered schedule, the executor being the other. A rank runs its actions one after the
/// other. A message leaves when its send is reached and when the channel's previous message has
/// left, and arrives after `link.seconds(bytes)`; computing goes on meanwhile. Throws Error for a
/// deadlock, naming the stuck actions, and where a stage has no cost.
Simulation simulate(
    const std::vector<Program>& programs,
    const std::vector<StageCost>& stages,
    const LinkCost& link = {});

}  // namespace gpipe::plan
