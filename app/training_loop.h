#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/data_source.h"
#include "app/evaluation.h"
#include "app/lr_schedule.h"
#include "app/metrics_file.h"
#include "app/options.h"
#include "app/progress.h"
#include "app/records.h"
#include "app/stopwatch.h"
#include "gpipe/core/pipeline.h"
#include "gpipe/core/pipeline_optimizer.h"

namespace gpipe::app {

/// Number of updates that the options ask for: the smaller of --steps and --epochs, where one
/// epoch is one pass; one epoch where they give neither.
int64_t total_steps(const Options& options, int64_t batches_per_epoch);

/// Trains a pipeline on the data by the options. One step is one update of the weights, from
/// `accumulate` mini-batches (fewer at the end of an epoch) that count as one. Reports to a metrics
/// file and a progress line; stops early for a signal or --max-minutes, always between two steps.
class TrainingLoop {
 public:
  /// All but the options are used until the loop goes, and must outlive it.
  TrainingLoop(
      const Options& options,
      Pipeline& pipeline,
      RunData& data,
      MetricsFile& metrics,
      Progress& progress);
  ~TrainingLoop();

  /// Runs to the end, with the evaluations in between. Throws Error where the loss, or the norm of
  /// the gradients to be clipped, is not finite; the weights are then those of the step before.
  /// Fills all of the summary but the digest and the file of the weights.
  RunSummary run();

 private:
  bool is_done();
  std::vector<data::Batch> next_batches();
  void end_epoch();
  void step(std::vector<data::Batch>& batches);
  double run_pipeline(const std::vector<data::Batch>& batches, int64_t rows);
  void update(double loss, const std::vector<data::Batch>& batches);
  void record_step(double loss, int64_t rows, double seconds);
  void evaluate_now();
  [[noreturn]] void refuse(const char* what, double value, const std::vector<data::Batch>& batches);

  const Options options_;
  Pipeline& pipeline_;
  RunData& data_;
  MetricsFile& metrics_;
  Progress& progress_;
  PipelineOptimizer optimizer_;
  Loss loss_;
  LrSchedule lr_;
  AccuracyCounter accuracy_;

  RunSummary summary_;
  int64_t epoch_ = 1;                 ///< of the batches to come, from 1
  std::vector<double> busy_seconds_;  ///< [stage], of all steps
  double pipeline_seconds_ = 0;       ///< of all steps
  double step_bubble_ = 0;            ///< of the last step
};

}  // namespace gpipe::app
