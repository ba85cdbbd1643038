#pragma once

#include <map>
#include <string>

#include "gpipe/core/pipeline.h"

namespace gpipe {

/// Writes a safetensors file: beside, synced, then renamed over `path`, so that a reader never sees
/// half a file. Tensors are brought to the CPU and made contiguous. Throws Error naming the path
/// and the system's reason.
void save_safetensors(
    const std::string& path,
    const NamedTensors& tensors,
    const std::map<std::string, std::string>& metadata = {});

struct SafetensorsFile {
  NamedTensors tensors;  ///< in the order of the file's data
  std::map<std::string, std::string> metadata;
};

/// Reads one. Throws Error for a missing, truncated or malformed file; never allocates more than
/// the file holds.
SafetensorsFile load_safetensors(const std::string& path);

/// Copies tensors into parameters and buffers of the same names. All are checked first, so nothing
/// is half-loaded: throws Error naming every missing, unexpected, or differing tensor with both
/// shapes and dtypes.
void load_into(const Pipeline& pipeline, const NamedTensors& tensors);

}  // namespace gpipe
