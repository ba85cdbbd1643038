#pragma once

#include <vector>

#include "gpipe/core/layer.h"

namespace gpipe {

/// Layers per stage: the user's own, checked, or, where it is empty, balanced by number of parameters. Throws Error for
/// more stages than layers, and for a cut that does not add up.
std::vector<int> resolve_cut(const Layers& layers, int num_stages, const std::vector<int>& cut);

}  // namespace gpipe
