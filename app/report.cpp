#include "app/report.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <numeric>
#include <sstream>

#include "gpipe/base/units.h"

namespace gpipe::app {
namespace {

using Row = std::vector<std::string>;

/// Columns two blanks apart; the second (names) flush left, all others flush right.
std::string to_table(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::ostringstream out;
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i)
      out << (i == 0 ? "" : "  ") << (i == 1 ? std::left : std::right)
          << std::setw(static_cast<int>(widths[i])) << row[i];
    out << '\n';
  }
  return out.str();
}

std::string layer_names(const StageRecord& stage) {
  const auto& layers = stage.layers;
  if (layers.empty())
    return "-";
  if (layers.size() == 1)
    return layers.front() + " (1)";
  return layers.front() + " .. " + layers.back() + " (" + std::to_string(layers.size()) + ")";
}

std::string labelled(const std::string& label, const std::string& text) {
  std::ostringstream out;
  out << std::left << std::setw(10) << label << text << '\n';
  return out.str();
}

std::string trained_text(const RunSummary& summary) {
  std::ostringstream out;
  out << to_thousands(summary.steps) << (summary.steps == 1 ? " step" : " steps") << " (epoch "
      << summary.epochs << ") in " << to_duration(summary.train_seconds);
  if (summary.train_seconds > 0)
    out << ", "
        << to_thousands(std::llround(static_cast<double>(summary.rows) / summary.train_seconds))
        << " rows/s";
  out << ", bubble " << to_percent(summary.bubble);
  if (!summary.stopped_by.empty())
    out << "; stopped by " << summary.stopped_by;
  return out.str();
}

std::string stage_table(const std::vector<StageRecord>& stages) {
  std::vector<Row> rows = {{"stage", "layers", "parameters", "busy", "peak memory"}};
  for (size_t stage = 0; stage < stages.size(); ++stage)
    rows.push_back(
        {std::to_string(stage),
         layer_names(stages[stage]),
         to_thousands(stages[stage].parameters),
         to_percent(stages[stage].busy_share),
         format_bytes(stages[stage].peak_bytes)});
  return to_table(rows);
}

}  // namespace

std::string to_fixed(double number, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << number;
  return out.str();
}

std::string to_duration(double seconds) {
  if (seconds < 59.95)
    return to_fixed(seconds, 1) + " s";
  const int64_t total = std::llround(seconds);
  const auto two = [](int64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  if (total < 3600)
    return std::to_string(total / 60) + " min " + two(total % 60) + " s";
  return std::to_string(total / 3600) + " h " + two(total % 3600 / 60) + " min";
}

std::string to_thousands(int64_t number) {
  std::string digits = std::to_string(number);
  const ptrdiff_t first = number < 0 ? 1 : 0;
  for (auto at = static_cast<ptrdiff_t>(digits.size()) - 3; at > first; at -= 3)
    digits.insert(digits.begin() + at, ',');
  return digits;
}

std::string to_percent(double share) {
  return to_fixed(100 * share, 1) + " %";
}

std::string plan_text(const std::vector<StageRecord>& stages, const std::string& cost_name) {
  std::vector<Row> rows = {{"stage", "layers", "parameters", "share of " + cost_name}};
  for (size_t stage = 0; stage < stages.size(); ++stage)
    rows.push_back(
        {std::to_string(stage),
         layer_names(stages[stage]),
         to_thousands(stages[stage].parameters),
         to_percent(stages[stage].cost_share)});
  return to_table(rows);
}

std::string evaluation_text(const EvalRecord& record) {
  std::ostringstream out;
  if (record.is_text()) {
    out << "held-out loss " << to_fixed(record.loss, 4) << " nats per byte (bigram model "
        << to_fixed(*record.bigram_loss, 4) << "), ";
  } else {
    out << "test loss " << to_fixed(record.loss, 4) << ", ";
  }
  out << "accuracy " << to_fixed(100 * record.accuracy, 2) << " %, " << to_thousands(record.rows)
      << " rows in " << to_duration(record.seconds);
  return out.str() + '\n';
}

std::string fingerprint_text(const Fingerprint& fingerprint) {
  std::ostringstream out;
  out << "bits depend on: LibTorch " << fingerprint.libtorch_version << ", "
      << fingerprint.cpu_capability << ", " << fingerprint.device << ", " << fingerprint.dtype
      << ", " << fingerprint.threads << (fingerprint.threads == 1 ? " thread" : " threads")
      << " a stage, M=" << fingerprint.micro_batches << ", schedule " << fingerprint.schedule
      << ", seed " << fingerprint.seed << '\n';
  return out.str();
}

std::string summary_text(const RunSummary& summary) {
  std::string text = labelled("trained", trained_text(summary));
  if (summary.last_loss)
    text += labelled("loss", to_fixed(*summary.last_loss, 6) + " (last step)");
  if (summary.evaluation) {
    std::string line = evaluation_text(*summary.evaluation);
    line.pop_back();
    text += labelled("tested", line);
  }
  text += stage_table(summary.stages);
  if (!summary.weights_file.empty())
    text += labelled("weights", summary.weights_file);
  return text + labelled("digest", summary.digest);
}

}  // namespace gpipe::app
