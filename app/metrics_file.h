#pragma once

#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/option_table.h"
#include "app/records.h"

namespace gpipe::app {

/// A file of JSON lines about a run, each with a `kind`: `configuration` first, then `step` and
/// `evaluation`, `summary` last. Each line is on disk when its call returns.
class MetricsFile {
 public:
  /// Truncates the file. An empty path writes nothing. Throws Error where it cannot be written.
  explicit MetricsFile(const std::string& path);

  void configuration(
      const std::string& command, const OptionTable& table, const Fingerprint& fingerprint);
  void step(const StepRecord& record);
  void evaluation(const EvalRecord& record);
  void summary(const RunSummary& summary);

 private:
  void write(const nlohmann::ordered_json& line);

  std::string path_;
  std::ofstream file_;
};

}  // namespace gpipe::app
