#pragma once

#include <c10/core/Device.h>

#include <vector>

namespace gpipe {

/// The device of each stage: the given ones, or the CPU for all. Loads LibTorch's CUDA library where one is a GPU: it is
/// not linked, so that one binary serves machines with and without. Throws Error where a device is not there.
std::vector<c10::Device> resolve_devices(const std::vector<c10::Device>& devices, int num_stages);

}  // namespace gpipe
