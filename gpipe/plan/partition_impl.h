#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpipe/plan/partition.h"

namespace gpipe::plan {

/// The limits of the stage; the default where the problem has none.
StageLimits limits_of(const PartitionProblem& problem, int stage);

/// Throws Error where the problem is not well-formed.
void check_problem(const PartitionProblem& problem);

/// Time and bytes of any run of layers on any stage, in constant time. Times are whole ticks.
class StageModel {
 public:
  explicit StageModel(const PartitionProblem& problem);

  int num_layers() const { return static_cast<int>(ticks_.size()) - 1; }
  int num_stages() const { return static_cast<int>(stages_.size()); }
  bool has_memory_limits() const { return has_memory_limits_; }
  const StageLimits& limits(int stage) const { return stages_[stage]; }

  /// Ticks of the stage without transfers: grows with every further layer.
  std::int64_t compute_ticks(int stage, int begin, int end) const {
    std::int64_t ticks = ticks_[end] - ticks_[begin];
    double speed = stages_[stage].speed;
    return speed == 1 ? ticks : static_cast<std::int64_t>(static_cast<double>(ticks) / speed);
  }

  std::int64_t transfer_ticks(int begin, int end) const {
    return transfer_ticks_[begin] + transfer_ticks_[end];
  }

  std::int64_t bytes(int stage, int begin, int end) const {
    return bytes_without_input(stage, begin, end) +
           stages_[stage].inputs_in_flight * input_bytes_[begin];
  }

  bool fits(int stage, int begin, int end) const {
    std::int64_t limit = stages_[stage].memory_bytes;
    return limit == 0 || bytes(stage, begin, end) <= limit;
  }

  /// Whether no run of layers that contains these fits.
  bool never_fits(int stage, int begin, int end) const {
    std::int64_t limit = stages_[stage].memory_bytes;
    return limit != 0 && bytes_without_input(stage, begin, end) > limit;
  }

 private:
  std::int64_t bytes_without_input(int stage, int begin, int end) const {
    return fixed_bytes_[end] - fixed_bytes_[begin] +
           stages_[stage].graphs_in_flight * (activation_bytes_[end] - activation_bytes_[begin]);
  }

  void set_ticks(const PartitionProblem& problem);

  std::vector<StageLimits> stages_;
  bool has_memory_limits_ = false;
  // Sums over the layers before each: [num_layers + 1].
  std::vector<std::int64_t> ticks_;
  std::vector<std::int64_t> fixed_bytes_;
  std::vector<std::int64_t> activation_bytes_;
  // At a boundary before each layer, and behind the last: [num_layers + 1].
  std::vector<std::int64_t> transfer_ticks_;
  std::vector<std::int64_t> input_bytes_;
};

/// The text for memory limits that no partition meets.
std::string explain_memory(const PartitionProblem& problem, const StageModel& model);

}  // namespace gpipe::plan
