#include "gpipe/core/cut.h"

#include <string>

#include "gpipe/base/error.h"
#include "gpipe/plan/partition.h"

namespace gpipe {

std::vector<int> resolve_cut(const Layers& layers, int num_stages, const std::vector<int>& cut) {
  GPIPE_CHECK(!layers.empty(), "[pipeline] the network has no layers; push_back at least one");
  if (!cut.empty()) {
    GPIPE_CHECK(
        static_cast<int>(cut.size()) == num_stages,
        "[pipeline] the cut has ",
        cut.size(),
        " parts for ",
        num_stages,
        " stages; give the number of layers of each stage");
    return plan::layers_per_stage(plan::partition_from_cut(cut, layers.size()));
  }
  plan::PartitionProblem problem;
  problem.num_stages = num_stages;
  for (int i = 0; i < layers.size(); ++i)
    problem.names.push_back(layers[i].name());
  // A layer without parameters costs something too, so that equal layers make equal stages.
  for (int64_t count : layers.num_parameters_per_layer())
    problem.costs.push_back(static_cast<double>(count) + 1);
  return plan::layers_per_stage(plan::make_partition(problem));
}

}  // namespace gpipe
