#pragma once

#include <string>

#include "app/option_table.h"
#include "app/options.h"
#include "app/records.h"
#include "gpipe/core/pipeline.h"

namespace gpipe::app {

/// The folder of --output. An empty name writes nothing.
class OutputFolder {
 public:
  /// Creates it and writes config.toml, which shows at the start that it can be written to. Throws
  /// Error where it cannot.
  OutputFolder(const std::string& path, const OptionTable& table);

  /// Writes model.safetensors: all parameters and buffers, with the step and the digest beside
  /// them. Returns its path; empty where there is no folder.
  std::string save(const Pipeline& pipeline, const Options& options, const RunSummary& summary);

 private:
  std::string path_;
};

/// Loads --weights into the pipeline; nothing for an empty path. Throws Error where the file does
/// not fit the model.
void load_weights(const std::string& path, const Pipeline& pipeline);

}  // namespace gpipe::app
