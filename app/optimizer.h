#pragma once

#include "app/options.h"
#include "gpipe/core/pipeline_optimizer.h"

namespace gpipe::app {

/// The optimizer that the options name, one for each stage.
PipelineOptimizer make_optimizer(const Options& options, Pipeline& pipeline);

}  // namespace gpipe::app
