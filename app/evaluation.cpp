#include "app/evaluation.h"

#include <torch/nn/functional/loss.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/interrupt.h"
#include "app/stopwatch.h"
#include "gpipe/data/text.h"

namespace gpipe::app {
namespace {

constexpr int64_t kIgnored = data::TextCover::kIgnoredTarget;

/// Sum over all targets, in double: [] of the batch.
double summed_loss(const at::Tensor& outputs, const at::Tensor& targets) {
  namespace F = torch::nn::functional;
  const auto options = F::CrossEntropyFuncOptions().ignore_index(kIgnored).reduction(torch::kSum);
  at::Tensor rows = outputs.flatten(0, -2);
  if (rows.scalar_type() != at::kDouble)
    rows = rows.to(at::kFloat);
  return F::cross_entropy(rows, targets.flatten(), options).item<double>();
}

class EvalMode {
 public:
  explicit EvalMode(Pipeline& pipeline)
      : pipeline_(pipeline), was_training_(pipeline.is_training()) {
    pipeline_.eval();
  }
  ~EvalMode() { pipeline_.train(was_training_); }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  Pipeline& pipeline_;
  bool was_training_;
};

}  // namespace

void AccuracyCounter::add(const at::Tensor& outputs, const at::Tensor& targets) {
  const at::Tensor counts = targets != kIgnored;
  right_ += (outputs.argmax(-1) == targets).logical_and(counts).sum().item<int64_t>();
  counted_ += counts.sum().item<int64_t>();
}

double AccuracyCounter::take() {
  const auto counted = static_cast<double>(std::max<int64_t>(std::exchange(counted_, 0), 1));
  return static_cast<double>(std::exchange(right_, 0)) / counted;
}

Loss make_training_loss(const Options& options, const RunData& data) {
  CrossEntropyOptions loss;
  loss.label_smoothing = options.label_smoothing;
  loss.ignore_index = kIgnored;
  loss.class_dim = data.is_sequence ? -1 : 1;
  return CrossEntropyLoss(loss);
}

std::optional<EvalRecord> evaluate(Pipeline& pipeline, RunData& data, c10::ScalarType dtype) {
  const Stopwatch watch;
  const torch::NoGradGuard no_grad;
  const EvalMode eval_mode(pipeline);
  EvalRecord record;
  record.bigram_loss = data.bigram_loss;
  AccuracyCounter accuracy;
  double loss = 0;
  int64_t targets = 0;
  data.held_out->start_epoch(0);
  while (auto batch = data.held_out->next()) {
    if (Interrupt::requested())
      return std::nullopt;
    const data::Batch ready = to_dtype(std::move(*batch), dtype);
    const at::Tensor outputs = pipeline.forward(ready.inputs).cpu();
    const at::Tensor& target = ready.targets.front();
    loss += summed_loss(outputs, target);
    targets += (target != kIgnored).sum().item<int64_t>();
    accuracy.add(outputs, target);
    record.rows += ready.rows();
  }
  record.loss = loss / static_cast<double>(targets);
  GPIPE_CHECK(
      std::isfinite(record.loss),
      "[eval] the loss of the held-out rows is ",
      record.loss,
      "; the weights are of no use");
  record.accuracy = accuracy.take();
  record.seconds = watch.seconds();
  return record;
}

}  // namespace gpipe::app
