#pragma once

#include <cstdint>
#include <optional>

#include "app/data_source.h"
#include "app/records.h"
#include "gpipe/core/loss.h"
#include "gpipe/core/pipeline.h"

namespace gpipe::app {

/// Counts predictions that are right: the class with the largest output is the target. Targets that
/// losses ignore (-100) do not count.
class AccuracyCounter {
 public:
  /// Outputs [..., classes], targets [...].
  void add(const at::Tensor& outputs, const at::Tensor& targets);

  /// Share of right predictions since the last call; 0 without any.
  double take();

 private:
  int64_t right_ = 0;
  int64_t counted_ = 0;
};

/// The loss that is trained for: cross entropy over the last dimension of the outputs, with label
/// smoothing where it is asked for.
Loss make_training_loss(const Options& options, const RunData& data);

/// Loss (mean over all targets, without smoothing) and accuracy on the held-out rows, in eval mode;
/// the mode is then as before. `step` and `epoch` of the record are left to the caller. Nothing
/// where a signal came. Throws Error where the loss is not finite.
std::optional<EvalRecord> evaluate(Pipeline& pipeline, RunData& data, c10::ScalarType dtype);

}  // namespace gpipe::app
