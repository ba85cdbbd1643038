#pragma once

#include <map>
#include <memory>
#include <vector>

#include "gpipe/core/executor.h"
#include "gpipe/core/local_transport.h"
#include "gpipe/core/pipeline.h"
#include "gpipe/core/stage.h"
#include "gpipe/core/stage_run.h"

namespace gpipe {

/// A schedule made ready for one number of micro-batches: whole for step(), or in two halves for forward().
struct ReadySchedule {
  std::unique_ptr<Executor<Message>> step;
  std::unique_ptr<Executor<Message>> forward_half;
  std::unique_ptr<Executor<Message>> backward_half;
  std::vector<std::vector<bool>> rematerialize;  // [K][M]
};

/// The gradient of an input over all micro-batches; zero for those in which nothing depends on it, undefined where it is so
/// in all.
at::Tensor merge_input_gradients(const MiniBatch& batch, size_t input);

/// What a Pipeline is made of.
struct Pipeline::Impl {
  Impl(Layers layers, PipelineOptions options);

  /// Schedules are made on first use and kept by number of micro-batches.
  ReadySchedule& step_schedule(int num_micro_batches);
  ReadySchedule& half_schedule(int num_micro_batches);

  MiniBatch make_mini_batch(const Values& inputs, const std::vector<int64_t>& rows) const;
  std::vector<std::unique_ptr<StageRun>> make_runs(MiniBatch& batch, const ReadySchedule& schedule);

  /// Runs the stages, and keeps the timeline. `commits` updates BatchNorm's statistics at the end. After an error all
  /// buffers are as before.
  void run(
      Executor<Message>& executor,
      const std::vector<std::unique_ptr<StageRun>>& runs,
      bool commits);

  /// The dtype of autocast: the option, or what the calling thread has.
  std::optional<c10::ScalarType> autocast() const;

  int last_stage() const { return static_cast<int>(stages.size()) - 1; }

  Layers layers;
  PipelineOptions options;
  std::vector<std::unique_ptr<Stage>> stages;
  std::unique_ptr<WorkerThreads> workers;
  std::unique_ptr<LocalTransport<Message>> transport;
  std::map<int, ReadySchedule> step_schedules;
  std::map<int, ReadySchedule> half_schedules;
  Observer observer;
  plan::Timeline timeline;
  int64_t step_count = 0;
  bool is_training = true;
};

}  // namespace gpipe
