#include <algorithm>
#include <limits>
#include <numeric>

#include "gpipe/base/error.h"
#include "gpipe/plan/partition_impl.h"

namespace gpipe::plan {
namespace {

/// Sums of squares of up to 2^51 ticks do not fit into 64 bits.
__extension__ using Wide = unsigned __int128;

constexpr std::int64_t kNoTicks = std::numeric_limits<std::int64_t>::max();
constexpr Wide kNoSquares = ~Wide{0};

/// The time below which no partition comes: that of the costliest layer on the fastest stage.
std::int64_t lower_bound_of(const StageModel& model) {
  std::int64_t bound = 0;
  for (int layer = 0; layer < model.num_layers(); ++layer) {
    std::int64_t fastest = kNoTicks;
    for (int stage = 0; stage < model.num_stages(); ++stage)
      fastest = std::min(fastest, model.compute_ticks(stage, layer, layer + 1));
    bound = std::max(bound, fastest);
  }
  return bound;
}

/// Two passes of the same dynamic program over "the first stages take the first layers": the first
/// finds the least time of the slowest stage, the second, among the stages no slower, the least sum
/// of squares. The begin of a stage is looked for from its end backwards, until computing alone
/// makes the stage too slow for all begins further on.
class Solver {
 public:
  explicit Solver(const StageModel& model)
      : model_(model),
        num_layers_(model.num_layers()),
        num_stages_(model.num_stages()),
        lower_bound_(lower_bound_of(model)) {}

  /// kNoTicks where the memory limits cannot be met.
  std::int64_t least_slowest() const {
    std::vector<std::int64_t> before(num_layers_ + 1, kNoTicks);
    before[0] = 0;
    for (int stage = 0; stage < num_stages_; ++stage) {
      std::vector<std::int64_t> after(num_layers_ + 1, kNoTicks);
      for (int end = stage + 1; end <= last_end(stage); ++end)
        after[end] = least_slowest(stage, end, before);
      before.swap(after);
    }
    return before[num_layers_];
  }

  Partition least_squares(std::int64_t slowest) const {
    Prefixes before{std::vector<Wide>(num_layers_ + 1, kNoSquares), {}};
    before.squares[0] = 0;
    std::vector<std::vector<int>> begins;
    for (int stage = 0; stage < num_stages_; ++stage) {
      before.set_least();
      std::vector<Wide> after(num_layers_ + 1, kNoSquares);
      auto& begin = begins.emplace_back(num_layers_ + 1, -1);
      for (int end = stage + 1; end <= last_end(stage); ++end)
        after[end] = least_squares(stage, end, slowest, before, begin[end]);
      before.squares.swap(after);
    }
    return trace_back(begins);
  }

 private:
  /// Sums of squares with the stages so far over the layers before each: [num_layers + 1].
  struct Prefixes {
    std::vector<Wide> squares;
    std::vector<Wide> least;  ///< of this prefix and all shorter ones

    void set_least() {
      least.resize(squares.size());
      auto lesser = [](Wide left, Wide right) { return std::min(left, right); };
      std::partial_sum(squares.begin(), squares.end(), least.begin(), lesser);
    }
  };

  /// Every later stage needs a layer.
  int last_end(int stage) const { return num_layers_ - (num_stages_ - 1 - stage); }

  std::int64_t least_slowest(int stage, int end, const std::vector<std::int64_t>& before) const {
    std::int64_t best = kNoTicks;
    // Once no slower than the bound, a better value would make no difference.
    for (int begin = end - 1; begin >= stage && best > lower_bound_; --begin) {
      std::int64_t compute = model_.compute_ticks(stage, begin, end);
      if (compute >= best || model_.never_fits(stage, begin, end))
        break;
      std::int64_t slowest = std::max(before[begin], compute + model_.transfer_ticks(begin, end));
      if (slowest < best && model_.fits(stage, begin, end))
        best = slowest;
    }
    return best;
  }

  Wide least_squares(
      int stage, int end, std::int64_t slowest, const Prefixes& before, int& best_begin) const {
    Wide best = kNoSquares;
    for (int begin = end - 1; begin >= stage; --begin) {
      std::int64_t compute = model_.compute_ticks(stage, begin, end);
      bool is_hopeless = before.least[begin] > best || square(compute) > best - before.least[begin];
      if (compute > slowest || is_hopeless || model_.never_fits(stage, begin, end))
        break;
      std::int64_t ticks = compute + model_.transfer_ticks(begin, end);
      bool is_possible = before.squares[begin] != kNoSquares && ticks <= slowest;
      if (!is_possible || !model_.fits(stage, begin, end))
        continue;
      // Not less, but less or equal: among equals the longer later stage.
      if (Wide squares = before.squares[begin] + square(ticks); squares <= best) {
        best = squares;
        best_begin = begin;
      }
    }
    return best;
  }

  static Wide square(std::int64_t ticks) {
    return static_cast<Wide>(ticks) * static_cast<Wide>(ticks);
  }

  Partition trace_back(const std::vector<std::vector<int>>& begins) const {
    Partition partition;
    partition.boundaries.assign(num_stages_ + 1, num_layers_);
    for (int stage = num_stages_ - 1; stage >= 0; --stage)
      partition.boundaries[stage] = begins[stage][partition.boundaries[stage + 1]];
    return partition;
  }

  const StageModel& model_;
  int num_layers_;
  int num_stages_;
  std::int64_t lower_bound_;
};

}  // namespace

Partition make_partition(const PartitionProblem& problem) {
  check_problem(problem);
  StageModel model(problem);
  Solver solver(model);
  std::int64_t slowest = solver.least_slowest();
  if (slowest == kNoTicks)
    throw Error(explain_memory(problem, model));
  return solver.least_squares(slowest);
}

Partition make_partition(const std::vector<double>& costs, int num_stages) {
  PartitionProblem problem;
  problem.num_stages = num_stages;
  problem.costs = costs;
  return make_partition(problem);
}

}  // namespace gpipe::plan
