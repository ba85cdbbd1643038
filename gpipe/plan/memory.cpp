#include "gpipe/plan/memory.h"

#include <algorithm>

#include "gpipe/base/error.h"

namespace gpipe::plan {
namespace {

/// The micro-batches of each stage that the program recomputes: [num_stages], sorted.
std::vector<std::vector<int>> recomputes_of(const Program& program, std::size_t num_stages) {
  std::vector<std::vector<int>> recomputes(num_stages);
  for (const Action& action : program) {
    GPIPE_CHECK(
        action.stage >= 0 && action.stage < static_cast<int>(num_stages),
        "[memory] ",
        to_string(action),
        " needs the cost of its stage, but there are ",
        num_stages,
        "; give one for each stage");
    if (action.op == Op::Recompute)
      recomputes[action.stage].push_back(action.micro_batch);
  }
  for (auto& micro_batches : recomputes)
    std::sort(micro_batches.begin(), micro_batches.end());
  return recomputes;
}

/// Follows one stage through its rank's program.
class StageLifetimes {
 public:
  explicit StageLifetimes(const StageCost& cost) : cost_(cost) {}

  /// `has_recompute` says whether the program has an R for the action's micro-batch.
  void run(Op op, bool has_recompute) {
    if (op == Op::Forward)
      ++micro_batches_;
    if (op == Op::Recompute || (op == Op::Forward && !has_recompute))
      ++graphs_;
    note_peak();
    if (op == Op::Backward || op == Op::BackwardWeight) {
      --micro_batches_;
      --graphs_;
    }
  }

  const InFlightPeak& peak() const { return peak_; }

 private:
  void note_peak() {
    peak_.micro_batches = std::max(peak_.micro_batches, micro_batches_);
    peak_.graphs = std::max(peak_.graphs, graphs_);
    peak_.bytes = std::max(
        peak_.bytes, micro_batches_ * cost_.input_bytes + graphs_ * cost_.activation_bytes);
  }

  StageCost cost_;
  int micro_batches_ = 0;
  int graphs_ = 0;
  InFlightPeak peak_;
};

}  // namespace

std::vector<InFlightPeak> in_flight_peaks(
    const std::vector<Program>& programs, const std::vector<StageCost>& stages) {
  std::vector<StageLifetimes> lifetimes(stages.begin(), stages.end());
  for (const Program& program : programs) {
    auto recomputes = recomputes_of(program, stages.size());
    for (const Action& action : program) {
      const auto& recomputed = recomputes[action.stage];
      lifetimes[action.stage].run(
          action.op, std::binary_search(recomputed.begin(), recomputed.end(), action.micro_batch));
    }
  }
  std::vector<InFlightPeak> peaks;
  for (const StageLifetimes& lifetime : lifetimes)
    peaks.push_back(lifetime.peak());
  return peaks;
}

}  // namespace gpipe::plan
