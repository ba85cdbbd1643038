#include <algorithm>
#include <cmath>
#include <numeric>

#include "gpipe/base/error.h"
#include "gpipe/plan/partition_impl.h"

namespace gpipe::plan {
namespace {

void check_length(std::size_t length, std::size_t wanted, const char* name, const char* of_what) {
  GPIPE_CHECK(
      length == 0 || length == wanted,
      "[partition] ",
      length,
      " entries of ",
      name,
      "; give one for each of the ",
      wanted,
      " ",
      of_what,
      ", or none");
}

void check_costs(const std::vector<double>& costs, const char* name) {
  for (std::size_t layer = 0; layer < costs.size(); ++layer) {
    GPIPE_CHECK(
        costs[layer] >= 0 && std::isfinite(costs[layer]),
        "[partition] the ",
        name,
        " of layer ",
        layer,
        " is ",
        costs[layer],
        "; use a number of at least 0");
  }
}

void check_stages(const std::vector<StageLimits>& stages) {
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const StageLimits& limits = stages[stage];
    GPIPE_CHECK(
        limits.speed > 0 && std::isfinite(limits.speed) && limits.memory_bytes >= 0 &&
            limits.inputs_in_flight >= 0 && limits.graphs_in_flight >= 0,
        "[partition] stage ",
        stage,
        " has speed ",
        limits.speed,
        ", ",
        limits.memory_bytes,
        " bytes, ",
        limits.inputs_in_flight,
        " inputs and ",
        limits.graphs_in_flight,
        " graphs in flight; use a speed above 0 and nothing below 0");
  }
}

template <class Number>
std::vector<Number> or_zeros(const std::vector<Number>& list, std::size_t length) {
  return list.empty() ? std::vector<Number>(length) : list;
}

std::vector<std::int64_t> running_sums(const std::vector<std::int64_t>& list) {
  std::vector<std::int64_t> sums(list.size() + 1, 0);
  std::partial_sum(list.begin(), list.end(), sums.begin() + 1);
  return sums;
}

/// A power of two, so that whole costs stay exact, of which `total` has at most 2^50.
double tick_of(double total) {
  constexpr int kBits = 50;
  int exponent = 0;
  std::frexp(total, &exponent);
  return std::ldexp(1.0, exponent - kBits);
}

}  // namespace

StageLimits limits_of(const PartitionProblem& problem, int stage) {
  return problem.stages.empty() ? StageLimits() : problem.stages.at(stage);
}

void check_problem(const PartitionProblem& problem) {
  std::size_t num_layers = problem.costs.size();
  GPIPE_CHECK(
      num_layers >= 1 && problem.num_stages >= 1,
      "[partition] ",
      problem.num_stages,
      " stages for ",
      num_layers,
      " layers; use at least 1 of each");
  GPIPE_CHECK(
      static_cast<std::size_t>(problem.num_stages) <= num_layers,
      "[partition] ",
      problem.num_stages,
      " stages for ",
      num_layers,
      " layers; use at most ",
      num_layers,
      " stages");
  check_length(problem.transfer_costs.size(), num_layers - 1, "transfer costs", "borders");
  check_length(problem.stages.size(), problem.num_stages, "limits", "stages");
  check_length(problem.fixed_bytes.size(), num_layers, "fixed bytes", "layers");
  check_length(problem.input_bytes.size(), num_layers, "input bytes", "layers");
  check_length(problem.activation_bytes.size(), num_layers, "activation bytes", "layers");
  check_length(problem.names.size(), num_layers, "names", "layers");
  check_costs(problem.costs, "cost");
  check_costs(problem.transfer_costs, "transfer cost");
  check_stages(problem.stages);
}

StageModel::StageModel(const PartitionProblem& problem) {
  std::size_t num_layers = problem.costs.size();
  for (int stage = 0; stage < problem.num_stages; ++stage) {
    stages_.push_back(limits_of(problem, stage));
    has_memory_limits_ = has_memory_limits_ || stages_.back().memory_bytes > 0;
  }
  set_ticks(problem);
  fixed_bytes_ = running_sums(or_zeros(problem.fixed_bytes, num_layers));
  activation_bytes_ = running_sums(or_zeros(problem.activation_bytes, num_layers));
  input_bytes_ = or_zeros(problem.input_bytes, num_layers);
  input_bytes_.push_back(0);
}

void StageModel::set_ticks(const PartitionProblem& problem) {
  std::vector<double> costs = problem.costs;
  double slowest = 1;
  for (const StageLimits& limits : stages_)
    slowest = std::min(slowest, limits.speed);
  double total = std::accumulate(costs.begin(), costs.end(), 0.0) / slowest +
                 std::accumulate(problem.transfer_costs.begin(), problem.transfer_costs.end(), 0.0);
  if (total == 0) {
    std::fill(costs.begin(), costs.end(), 1.0);
    total = static_cast<double>(costs.size()) / slowest;
  }
  double tick = tick_of(total);
  ticks_.push_back(0);
  for (double cost : costs)
    ticks_.push_back(ticks_.back() + std::llround(cost / tick));
  transfer_ticks_.push_back(0);
  for (double cost : or_zeros(problem.transfer_costs, costs.size() - 1))
    transfer_ticks_.push_back(std::llround(cost / tick));
  transfer_ticks_.push_back(0);
}

}  // namespace gpipe::plan
