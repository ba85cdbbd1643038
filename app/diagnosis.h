#pragma once

#include <string>

#include "gpipe/core/pipeline.h"

namespace gpipe::app {

/// Where a loss that is not finite comes from: runs the layers once more, micro-batch by
/// micro-batch, and names the first whose output is not finite, with its stage and micro-batch; or
/// the inputs; or the loss itself. Changes running statistics, so for runs that end.
std::string find_non_finite(const Pipeline& pipeline, const Tensors& inputs);

}  // namespace gpipe::app
