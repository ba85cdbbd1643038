#pragma once

#include <string>

#include "gpipe/core/pipeline.h"

namespace gpipe {

/// A hash (XXH3, 128 bits, hexadecimal) over names, dtypes, shapes and bits of all tensors, sorted
/// by name: equal for equal weights, whatever K.
std::string digest(const NamedTensors& tensors);

/// Over all parameters and buffers.
std::string digest(const Pipeline& pipeline);

}  // namespace gpipe
