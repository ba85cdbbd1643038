#pragma once

#include <string>

#include "app/options.h"
#include "gpipe/core/layer.h"

namespace gpipe::app {

/// The network of the options, not built yet. Throws UsageError for an unknown name, naming the
/// nearest, and for options that do not fit it.
Layers make_model(const Options& options);

/// Whether the model predicts a token for each token, rather than a class for each image.
bool is_sequence_model(const std::string& name);

}  // namespace gpipe::app
