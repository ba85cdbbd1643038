#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <tuple>

#include "gpipe/plan/partition.h"
#include "tests/plan/testing.h"

namespace gpipe::plan {
namespace {

using testing::HasSubstr;

double slowest(const PartitionProblem& problem, const Partition& partition) {
  auto times = stage_times(problem, partition);
  return *std::max_element(times.begin(), times.end());
}

double sum_of_squares(const PartitionProblem& problem, const Partition& partition) {
  auto times = stage_times(problem, partition);
  return std::inner_product(times.begin(), times.end(), times.begin(), 0.0);
}

/// All ways to cut `num_layers` into `num_stages`, in the order of their boundaries.
void for_each_partition(
    int num_layers, int num_stages, const std::function<void(const Partition&)>& visit) {
  Partition partition{{0}};
  std::function<void()> extend = [&] {
    int stage = partition.num_stages();
    if (stage == num_stages - 1) {
      partition.boundaries.push_back(num_layers);
      visit(partition);
      partition.boundaries.pop_back();
      return;
    }
    int last_end = num_layers - (num_stages - 1 - stage);
    for (int end = partition.boundaries.back() + 1; end <= last_end; ++end) {
      partition.boundaries.push_back(end);
      extend();
      partition.boundaries.pop_back();
    }
  };
  extend();
}

bool fits(const PartitionProblem& problem, const Partition& partition) {
  if (problem.stages.empty())
    return true;
  auto bytes = stage_bytes(problem, partition);
  for (int stage = 0; stage < problem.num_stages; ++stage) {
    std::int64_t limit = problem.stages[stage].memory_bytes;
    if (limit != 0 && bytes[stage] > limit)
      return false;
  }
  return true;
}

/// By trying all: the least slowest stage, then the least squares, then the smallest boundaries,
/// compared from the last on.
std::optional<Partition> best_of_all(const PartitionProblem& problem) {
  std::optional<Partition> best;
  auto key = [&](const Partition& partition) {
    auto reversed = partition.boundaries;
    std::reverse(reversed.begin(), reversed.end());
    return std::tuple(slowest(problem, partition), sum_of_squares(problem, partition), reversed);
  };
  int num_layers = static_cast<int>(problem.costs.size());
  for_each_partition(num_layers, problem.num_stages, [&](const Partition& partition) {
    if (fits(problem, partition) && (!best || key(partition) < key(*best)))
      best = partition;
  });
  return best;
}

int draw(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

/// Whole costs and speeds that are powers of two, so that the oracle's sums are exact as well.
PartitionProblem random_problem(std::mt19937& random, bool has_transfers, bool has_limits) {
  int num_layers = draw(random, 1, 9);
  PartitionProblem problem;
  problem.num_stages = draw(random, 1, num_layers);
  for (int layer = 0; layer < num_layers; ++layer) {
    problem.costs.push_back(draw(random, layer == 0 ? 1 : 0, 12) * 8);
    problem.fixed_bytes.push_back(draw(random, 0, 9));
    problem.input_bytes.push_back(draw(random, 0, 9));
    problem.activation_bytes.push_back(draw(random, 0, 9));
    if (has_transfers && layer > 0)
      problem.transfer_costs.push_back(draw(random, 0, 40));
  }
  for (int stage = 0; has_limits && stage < problem.num_stages; ++stage) {
    double speed = std::ldexp(1.0, draw(random, -1, 2));
    std::int64_t memory = draw(random, 0, 3) == 0 ? 0 : draw(random, 20, 90);
    problem.stages.push_back({speed, memory, draw(random, 1, 3), draw(random, 1, 2)});
  }
  return problem;
}

struct Kind {
  const char* name;
  bool has_transfers;
  bool has_limits;
};

class BruteForceTest : public testing::TestWithParam<Kind> {};

TEST_P(BruteForceTest, FindsTheBestOfAllPartitions) {
  std::mt19937 random(7);
  int num_solved = 0;
  int num_refused = 0;
  for (int round = 0; round < 400; ++round) {
    PartitionProblem problem =
        random_problem(random, GetParam().has_transfers, GetParam().has_limits);
    auto expected = best_of_all(problem);
    if (!expected) {
      EXPECT_THAT(error_of([&] { make_partition(problem); }), HasSubstr("[partition]"));
      ++num_refused;
      continue;
    }
    Partition partition = make_partition(problem);
    ASSERT_EQ(slowest(problem, partition), slowest(problem, *expected)) << "round " << round;
    ASSERT_EQ(sum_of_squares(problem, partition), sum_of_squares(problem, *expected))
        << "round " << round;
    ASSERT_EQ(partition.boundaries, expected->boundaries) << "round " << round;
    ++num_solved;
  }
  EXPECT_GE(num_solved, 100);
  EXPECT_EQ(num_refused > 0, GetParam().has_limits);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds,
    BruteForceTest,
    testing::Values(
        Kind{"CostsAlone", false, false},
        Kind{"Transfers", true, false},
        Kind{"Limits", false, true},
        Kind{"TransfersAndLimits", true, true}),
    [](const auto& kind) { return kind.param.name; });

/// Among the optima the sum of squares orders as the variance does, since the mean is the same.
TEST(PartitionTest, NoOptimumHasLessVariance) {
  std::mt19937 random(8);
  for (int round = 0; round < 100; ++round) {
    PartitionProblem problem = random_problem(random, false, false);
    Partition partition = make_partition(problem);
    auto variance = [&](const Partition& candidate) {
      auto times = stage_times(problem, candidate);
      double mean = std::accumulate(times.begin(), times.end(), 0.0) / problem.num_stages;
      double sum = 0;
      for (double time : times)
        sum += (time - mean) * (time - mean);
      return sum / problem.num_stages;
    };
    double least = variance(partition);
    double bound = slowest(problem, partition);
    int num_layers = static_cast<int>(problem.costs.size());
    for_each_partition(num_layers, problem.num_stages, [&](const Partition& candidate) {
      if (slowest(problem, candidate) == bound) {
        EXPECT_GE(variance(candidate), least - 1e-9);
      }
    });
  }
}

}  // namespace
}  // namespace gpipe::plan
