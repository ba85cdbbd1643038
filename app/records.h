#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpipe::app {

/// One training step: an update of the weights. Steps and epochs count from 1 here and wherever
/// they are shown.
struct StepRecord {
  int64_t step = 0;
  int64_t epoch = 0;
  double loss = 0;      ///< of the whole mini-batch, before the update
  double accuracy = 0;  ///< share of right predictions, 0 to 1
  double lr = 0;
  double rows_per_second = 0;
  double bubble = 0;  ///< idle share of the stages, 0 to 1
};

/// One pass over the held-out data.
struct EvalRecord {
  int64_t step = 0;   ///< steps done before it
  int64_t epoch = 0;  ///< epochs begun before it
  double loss = 0;    ///< mean over all targets, in nats
  double accuracy = 0;
  int64_t rows = 0;
  double seconds = 0;
  /// Text only: the bigram model's loss on the same targets.
  std::optional<double> bigram_loss = {};

  /// A language model's quality is its loss; its unit is nats per byte.
  bool is_text() const { return bigram_loss.has_value(); }
};

/// What a stage holds and did.
struct StageRecord {
  std::vector<std::string> layers = {};
  int64_t parameters = 0;
  double cost_share = 0;  ///< share of the cost that the cut was balanced by
  double busy_share = 0;  ///< of the time of all steps
  int64_t peak_bytes = 0;
};

/// What bits depend on, beside the model, its data and the options of the optimizer. Runs that
/// agree in these agree bit for bit, however many stages they have.
struct Fingerprint {
  std::string libtorch_version = {};
  std::string cpu_capability = {};
  std::string dtype = {};
  std::string device = {};
  std::string schedule = {};
  int64_t threads = 1;
  int64_t micro_batches = 1;
  int64_t seed = 0;
};

/// A run as its end has it.
struct RunSummary {
  int64_t steps = 0;
  int64_t epochs = 0;  ///< begun
  int64_t rows = 0;
  double train_seconds = 0;  ///< of the steps alone, without evaluation
  std::optional<double> last_loss;
  std::optional<EvalRecord> evaluation;
  std::vector<StageRecord> stages;
  double bubble = 0;
  std::string digest;
  std::string
      stopped_by;  ///< why it ended early: `SIGINT`, `--max-minutes`; empty where it did not
  std::string weights_file;  ///< empty where none was written
};

}  // namespace gpipe::app
