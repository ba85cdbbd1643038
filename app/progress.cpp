#include "app/progress.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "app/report.h"

namespace gpipe::app {
namespace {

std::string of_total(int64_t count, int64_t total) {
  return std::to_string(count) + "/" + std::to_string(total);
}

}  // namespace

std::string step_text(const StepRecord& record, const ProgressPlan& plan) {
  std::ostringstream out;
  const int64_t epochs = (plan.total_steps + plan.steps_per_epoch - 1) / plan.steps_per_epoch;
  out << "step " << of_total(record.step, plan.total_steps) << "  epoch "
      << of_total(record.epoch, epochs) << "  loss " << to_fixed(record.loss, 4)
      << (plan.is_text ? " nats/byte" : "") << "  accuracy " << to_percent(record.accuracy) << "  "
      << to_thousands(std::llround(record.rows_per_second)) << " rows/s  bubble "
      << to_percent(record.bubble);
  return out.str();
}

Progress::Progress(const ProgressPlan& plan) : plan_(plan) {}

void Progress::step(const StepRecord& record) {
  const double now = watch_.seconds();
  const double seconds = now - last_seconds_;
  last_seconds_ = now;
  constexpr double kNewShare = 0.05;
  step_seconds_ =
      record.step <= 2 ? seconds : step_seconds_ + kNewShare * (seconds - step_seconds_);
  const bool is_due =
      record.step == 1 || record.step % plan_.log_every == 0 || record.step == plan_.total_steps;
  if (status_.is_visible()) {
    status_.update(step_text(record, plan_) + "  left " + to_duration(seconds_left(record)));
  } else if (is_due) {
    standard_console().write_line(step_text(record, plan_));
  }
}

void Progress::note(const std::string& text) {
  status_.clear();
  status_.update(text);
}

void Progress::evaluation(const EvalRecord& record) {
  std::string text = evaluation_text(record);
  text.pop_back();
  status_.clear();
  standard_console().write_line("epoch " + std::to_string(record.epoch) + ": " + text);
  last_seconds_ = watch_.seconds();
}

void Progress::finish() {
  status_.clear();
}

double Progress::seconds_left(const StepRecord& record) const {
  const double left = step_seconds_ * static_cast<double>(plan_.total_steps - record.step);
  return plan_.max_seconds > 0 ? std::min(left, std::max(0.0, plan_.max_seconds - last_seconds_))
                               : left;
}

}  // namespace gpipe::app
