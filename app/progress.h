#pragma once

#include <cstdint>
#include <string>

#include "app/records.h"
#include "app/stopwatch.h"
#include "gpipe/base/status_line.h"

namespace gpipe::app {

/// What a run is told to reach, for "of how many" and the time that is left.
struct ProgressPlan {
  int64_t total_steps = 0;
  int64_t steps_per_epoch = 0;
  double max_seconds = 0;  ///< 0: none
  int64_t log_every = 50;
  /// A language model shows its loss in nats per byte.
  bool is_text = false;
};

/// `step 120/2345  epoch 1/5  loss 0.6421  accuracy 76.2 %  1,834 rows/s  bubble 12.1 %`
std::string step_text(const StepRecord& record, const ProgressPlan& plan);

/// Shows on stderr how a run goes: one live line on a terminal, a line every `log_every` steps
/// (and for the first and the last) elsewhere.
class Progress {
 public:
  explicit Progress(const ProgressPlan& plan);

  void step(const StepRecord& record);
  /// What is being done between steps, on the live line only.
  void note(const std::string& text);
  /// A lasting line.
  void evaluation(const EvalRecord& record);
  /// Takes the live line away.
  void finish();

 private:
  double seconds_left(const StepRecord& record) const;

  ProgressPlan plan_;
  StatusLine status_;
  Stopwatch watch_;
  double step_seconds_ = 0;  ///< running mean
  double last_seconds_ = 0;
};

}  // namespace gpipe::app
