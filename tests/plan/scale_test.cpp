#include <chrono>

#include "gpipe/plan/lower.h"
#include "gpipe/plan/partition.h"
#include "gpipe/plan/schedules.h"
#include "gpipe/plan/simulator.h"
#include "tests/plan/testing.h"

namespace gpipe::plan {
namespace {

/// Far above what a release build takes, so that sanitizers and busy machines pass, and far below
/// what anything quadratic would.
constexpr double kMaxSeconds = 20;

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class ScaleTest : public testing::TestWithParam<const char*> {};

TEST_P(ScaleTest, LowersAndSimulates256StagesAnd256MicroBatches) {
  Stopwatch stopwatch;
  auto programs = lower(make_schedule(GetParam(), 256, 256), Rematerialize::Always);
  validate_programs(programs);
  Simulation simulation = simulate(programs, uniform_stage_costs(256, 1, 1));
  EXPECT_GT(simulation.bubble_ratio, 0.3);
  EXPECT_LT(stopwatch.seconds(), kMaxSeconds);
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, ScaleTest, testing::Values("gpipe", "1f1b"), [](const auto& name) {
      return std::string(name.param);
    });

TEST(PartitionScaleTest, Solves2000LayersInto64Stages) {
  std::mt19937 random(6);
  std::uniform_real_distribution<double> cost(0.1, 1);
  std::vector<double> costs(2000);
  for (double& value : costs)
    value = cost(random);
  Stopwatch stopwatch;
  EXPECT_EQ(make_partition(costs, 64).num_stages(), 64);
  EXPECT_LT(stopwatch.seconds(), kMaxSeconds);
}

/// One huge layer makes every beginning of the others admissible: the worst case.
TEST(PartitionScaleTest, SolvesAroundOneHugeLayer) {
  std::vector<double> costs(2000, 1);
  costs[0] = 1e6;
  Stopwatch stopwatch;
  EXPECT_EQ(make_partition(costs, 64).num_layers(0), 1);
  EXPECT_LT(stopwatch.seconds(), kMaxSeconds);
}

}  // namespace
}  // namespace gpipe::plan
