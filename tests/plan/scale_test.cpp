#include "gpipe/plan/lower.h"
#include "gpipe/plan/partition.h"
#include "gpipe/plan/schedules.h"
#include "gpipe/plan/simulator.h"
#include "tests/plan/testing.h"

namespace gpipe::plan {
namespace {

/// That these end within the test's time-out is a part of what they say: nothing here may be quadratic.
class ScaleTest : public testing::TestWithParam<const char*> {};

TEST_P(ScaleTest, LowersAndSimulates256StagesAnd256MicroBatches) {
  auto programs = lower(make_schedule(GetParam(), 256, 256), Rematerialize::Always);
  validate_programs(programs);
  Simulation simulation = simulate(programs, uniform_stage_costs(256, 1, 1));
  EXPECT_GT(simulation.bubble_ratio, 0.3);
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
  EXPECT_EQ(make_partition(costs, 64).num_stages(), 64);
}

/// One huge layer makes every beginning of the others admissible: the worst case.
TEST(PartitionScaleTest, SolvesAroundOneHugeLayer) {
  std::vector<double> costs(2000, 1);
  costs[0] = 1e6;
  EXPECT_EQ(make_partition(costs, 64).num_layers(0), 1);
}

}  // namespace
}  // namespace gpipe::plan
