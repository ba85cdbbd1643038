#include "app/training_loop.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "app/diagnosis.h"
#include "app/interrupt.h"
#include "app/optimizer.h"
#include "app/pipeline_setup.h"
#include "app/report.h"

namespace gpipe::app {
namespace {

LrSchedule make_lr(const Options& options, int64_t steps) {
  return {
      .kind = options.lr_schedule,
      .peak = options.lr,
      .final_share = options.lr_final,
      .warmup_steps = options.warmup_steps,
      .total_steps = steps};
}

int64_t count_rows(const std::vector<data::Batch>& batches) {
  return std::accumulate(
      batches.begin(), batches.end(), int64_t{0}, [](int64_t sum, const data::Batch& batch) {
        return sum + batch.rows();
      });
}

}  // namespace

int64_t total_steps(const Options& options, int64_t batches_per_epoch) {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  const int64_t per_epoch = (batches_per_epoch + options.accumulate - 1) / options.accumulate;
  const bool unlimited = options.steps == 0 && options.epochs == 0;
  const int64_t epochs = unlimited ? 1 : options.epochs;
  const int64_t by_epochs = epochs == 0                     ? kNoLimit
                            : epochs > kNoLimit / per_epoch ? kNoLimit
                                                            : epochs * per_epoch;
  return std::min(options.steps == 0 ? kNoLimit : options.steps, by_epochs);
}

TrainingLoop::TrainingLoop(
    const Options& options,
    Pipeline& pipeline,
    RunData& data,
    MetricsFile& metrics,
    Progress& progress)
    : options_(options),
      pipeline_(pipeline),
      data_(data),
      metrics_(metrics),
      progress_(progress),
      optimizer_(make_optimizer(options, pipeline)),
      loss_(make_training_loss(options, data)),
      lr_(make_lr(options, total_steps(options, data.train->num_batches()))),
      busy_seconds_(static_cast<size_t>(options.stages)) {
  pipeline_.observe([this](int, const Tensors& outputs, const Tensors& targets) {
    accuracy_.add(outputs.front(), targets.front());
  });
}

TrainingLoop::~TrainingLoop() {
  pipeline_.observe({});
}

RunSummary TrainingLoop::run() {
  while (!is_done()) {
    auto batches = next_batches();
    batches.empty() ? end_epoch() : step(batches);
  }
  progress_.finish();
  const bool is_evaluated = summary_.evaluation && summary_.evaluation->step == summary_.steps;
  if (options_.eval && !is_evaluated && !Interrupt::requested())
    evaluate_now();
  const double stage_seconds = pipeline_seconds_ * static_cast<double>(busy_seconds_.size());
  if (stage_seconds > 0)
    summary_.bubble =
        1 - std::accumulate(busy_seconds_.begin(), busy_seconds_.end(), 0.0) / stage_seconds;
  for (const double seconds : busy_seconds_)
    summary_.stages.push_back(
        {.busy_share = pipeline_seconds_ > 0 ? seconds / pipeline_seconds_ : 0});
  return std::move(summary_);
}

bool TrainingLoop::is_done() {
  if (Interrupt::requested()) {
    summary_.stopped_by = std::string("SIG") + ::sigabbrev_np(Interrupt::signal());
    return true;
  }
  if (summary_.steps >= lr_.total_steps)
    return true;
  if (options_.max_minutes > 0 && summary_.train_seconds >= 60 * options_.max_minutes) {
    summary_.stopped_by = "--max-minutes";
    return true;
  }
  return false;
}

/// Those of one step; none at the end of an epoch, once.
std::vector<data::Batch> TrainingLoop::next_batches() {
  std::vector<data::Batch> batches;
  while (static_cast<int64_t>(batches.size()) < options_.accumulate) {
    if (!batches.empty() && data_.train->position().batch == data_.train->num_batches())
      break;
    auto batch = data_.train->next();
    if (!batch)
      break;
    batches.push_back(to_dtype(std::move(*batch), weight_dtype(options_)));
  }
  return batches;
}

void TrainingLoop::end_epoch() {
  const bool is_due = options_.eval_every > 0 && epoch_ % options_.eval_every == 0;
  if (is_due && options_.eval)
    evaluate_now();
  ++epoch_;
}

void TrainingLoop::step(std::vector<data::Batch>& batches) {
  const Stopwatch watch;
  optimizer_.zero_grad();
  const int64_t rows = count_rows(batches);
  const double loss = run_pipeline(batches, rows);
  update(loss, batches);
  record_step(loss, rows, watch.seconds());
}

/// Adds up the gradients of all batches, each weighted by its rows. Returns their loss.
double TrainingLoop::run_pipeline(const std::vector<data::Batch>& batches, int64_t rows) {
  double loss = 0;
  double busy = 0;
  double seconds = 0;
  for (const data::Batch& batch : batches) {
    const double share = static_cast<double>(batch.rows()) / static_cast<double>(rows);
    loss += share * pipeline_.step(batch.inputs, batch.targets, loss_, share).item<double>();
    const plan::Timeline& timeline = pipeline_.timeline();
    seconds += timeline.duration_seconds();
    for (size_t stage = 0; stage < timeline.ranks.size(); ++stage) {
      busy_seconds_[stage] += timeline.busy_seconds(static_cast<int>(stage));
      busy += timeline.busy_seconds(static_cast<int>(stage));
    }
  }
  pipeline_seconds_ += seconds;
  step_bubble_ = seconds > 0 ? 1 - busy / (seconds * static_cast<double>(busy_seconds_.size())) : 0;
  return loss;
}

void TrainingLoop::update(double loss, const std::vector<data::Batch>& batches) {
  if (!std::isfinite(loss))
    refuse("the loss", loss, batches);
  if (options_.clip_norm > 0) {
    const double norm = pipeline_.clip_grad_norm(options_.clip_norm);
    if (!std::isfinite(norm))
      refuse("the norm of the gradients", norm, batches);
  }
  optimizer_.set_lr(lr_.at(summary_.steps));
  optimizer_.step();
}

void TrainingLoop::record_step(double loss, int64_t rows, double seconds) {
  const StepRecord record = {
      .step = ++summary_.steps,
      .epoch = epoch_,
      .loss = loss,
      .accuracy = accuracy_.take(),
      .lr = lr_.at(summary_.steps - 1),
      .rows_per_second = static_cast<double>(rows) / seconds,
      .bubble = step_bubble_};
  summary_.epochs = epoch_;
  summary_.rows += rows;
  summary_.train_seconds += seconds;
  summary_.last_loss = loss;
  metrics_.step(record);
  progress_.step(record);
}

void TrainingLoop::evaluate_now() {
  progress_.note("evaluating");
  auto record = evaluate(pipeline_, data_, weight_dtype(options_));
  if (!record)
    return;
  record->step = summary_.steps;
  record->epoch = summary_.epochs;
  metrics_.evaluation(*record);
  progress_.evaluation(*record);
  summary_.evaluation = record;
}

void TrainingLoop::refuse(const char* what, double value, const std::vector<data::Batch>& batches) {
  progress_.finish();
  std::string cause;
  if (!std::isfinite(value) && std::strcmp(what, "the loss") == 0)
    for (const data::Batch& batch : batches)
      cause = find_non_finite(pipeline_, batch.inputs);
  throw Error(detail::concatenate(
      "[train] step ",
      summary_.steps + 1,
      ": ",
      what,
      " is ",
      value,
      cause.empty() ? "" : "; ",
      cause,
      ". The weights were not updated; try a lower --lr, --warmup-steps or --clip-norm"));
}

}  // namespace gpipe::app
