#pragma once

#include <string>
#include <vector>

#include "app/options.h"
#include "gpipe/core/layer.h"
#include "gpipe/data/batch.h"

namespace gpipe::app {

/// A division of the layers into stages, and what it was balanced by.
struct Cut {
  std::vector<int> layers_per_stage;
  std::vector<double> layer_costs;  ///< [L]
  std::string cost_name;            ///< `time`, `parameters`, `layers`
};

/// Cuts by --cut. For `time` the layers are measured on the first micro-batch of `example`, with
/// the recompute that --rematerialize asks for. Throws UsageError for a list that does not add up.
/// There must be as many layers as stages.
Cut make_cut(const Options& options, Layers& layers, const data::Batch& example);

}  // namespace gpipe::app
