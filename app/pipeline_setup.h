#pragma once

#include <c10/core/ScalarType.h>

#include <vector>

#include "app/cut.h"
#include "app/options.h"
#include "app/records.h"
#include "gpipe/core/layer.h"
#include "gpipe/core/pipeline.h"

namespace gpipe::app {

/// The dtype of weights and inputs; bfloat16 is left to autocast, so it is float32 there.
c10::ScalarType weight_dtype(const Options& options);

/// The network of the options, built, in the dtype of its weights. Throws UsageError where it has
/// fewer layers than there are stages.
Layers make_layers(const Options& options);

/// What gpipe::Pipeline is made with.
PipelineOptions to_pipeline_options(const Options& options, const Cut& cut);

/// One record a stage: layers, parameters, share of the cost.
std::vector<StageRecord> to_records(const Pipeline& pipeline, const Cut& cut);

Fingerprint make_fingerprint(const Options& options);

}  // namespace gpipe::app
