#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/records.h"

namespace gpipe::app {

// Texts for people. All end with a line break, except the short forms of single numbers.

std::string to_duration(double seconds);   ///< `12.3 s`, `4 min 07 s`, `1 h 02 min`
std::string to_thousands(int64_t number);  ///< `1,234,567`
std::string to_percent(double share);      ///< `88.71 %`
std::string to_fixed(double number, int digits);

/// The plan: one line per stage with its layers, parameters and share of the cost.
/// `cost_name` says what was balanced: `time`, `parameters`, ...
std::string plan_text(const std::vector<StageRecord>& stages, const std::string& cost_name);

/// Loss and accuracy in a line, for text nats per byte beside the bigram model's.
std::string evaluation_text(const EvalRecord& record);

/// One line with everything that bits depend on.
std::string fingerprint_text(const Fingerprint& fingerprint);

/// What a run ends with: time, throughput, quality, a table of the stages, and the digest.
std::string summary_text(const RunSummary& summary);

}  // namespace gpipe::app
