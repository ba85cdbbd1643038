#include "gpipe/plan/memory.h"

#include <algorithm>

#include "gpipe/plan/schedules.h"
#include "tests/plan/testing.h"

namespace gpipe::plan {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kInput = 10;
constexpr std::int64_t kActivation = 1000;

std::vector<InFlightPeak> peaks_of(const Schedule& schedule, Rematerialize mode) {
  StageCost cost;
  cost.input_bytes = kInput;
  cost.activation_bytes = kActivation;
  std::vector<StageCost> stages(schedule.num_stages, cost);
  return in_flight_peaks(lower(schedule, mode), stages);
}

struct Shape {
  int num_stages;
  int num_micro_batches;
};

class InFlightTest : public testing::TestWithParam<Shape> {
 protected:
  int num_stages = GetParam().num_stages;
  int num_micro_batches = GetParam().num_micro_batches;
};

/// M * input + M * activation without re-materialization, M * input + activation with it.
TEST_P(InFlightTest, FillDrainHoldsAllMicroBatches) {
  Schedule schedule = make_fill_drain(num_stages, num_micro_batches);
  for (const InFlightPeak& peak : peaks_of(schedule, Rematerialize::Never)) {
    EXPECT_EQ(peak.micro_batches, num_micro_batches);
    EXPECT_EQ(peak.graphs, num_micro_batches);
    EXPECT_EQ(peak.bytes, num_micro_batches * (kInput + kActivation));
  }
  for (auto mode : {Rematerialize::Always, Rematerialize::ExceptLast}) {
    for (const InFlightPeak& peak : peaks_of(schedule, mode)) {
      EXPECT_EQ(peak.micro_batches, num_micro_batches);
      EXPECT_EQ(peak.graphs, 1);
      EXPECT_EQ(peak.bytes, num_micro_batches * kInput + kActivation);
    }
  }
}

TEST_P(InFlightTest, OneFOneBHoldsAsManyAsStagesAreLeft) {
  Schedule schedule = make_one_f_one_b(num_stages, num_micro_batches);
  auto stored = peaks_of(schedule, Rematerialize::Never);
  auto recomputed = peaks_of(schedule, Rematerialize::Always);
  for (int stage = 0; stage < num_stages; ++stage) {
    int expected = std::min(num_micro_batches, num_stages - stage);
    EXPECT_EQ(stored[stage], (InFlightPeak{expected, expected, expected * (kInput + kActivation)}));
    EXPECT_EQ(recomputed[stage], (InFlightPeak{expected, 1, expected * kInput + kActivation}));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes,
    InFlightTest,
    testing::Values(Shape{1, 1}, Shape{1, 5}, Shape{4, 1}, Shape{4, 3}, Shape{4, 8}, Shape{7, 4}),
    [](const auto& shape) {
      return "k" + std::to_string(shape.param.num_stages) + "_m" +
             std::to_string(shape.param.num_micro_batches);
    });

TEST(MemoryTest, SplitBackwardsKeepUntilWeightsAreDone) {
  Schedule schedule = schedule_from_csv("0F0,0I0,0F1,0I1,0W0,0W1\n");
  EXPECT_EQ(peaks_of(schedule, Rematerialize::Never)[0].micro_batches, 2);
  schedule = schedule_from_csv("0F0,0I0,0W0,0F1,0I1,0W1\n");
  EXPECT_EQ(peaks_of(schedule, Rematerialize::Never)[0].micro_batches, 1);
}

TEST(MemoryTest, AnEarlyRecomputeHoldsItsGraphLonger) {
  Schedule schedule = schedule_from_csv("0F0,0F1,0R0,0R1,0B1,0B0\n");
  EXPECT_EQ(peaks_of(schedule, Rematerialize::Never)[0].graphs, 2);
  schedule = schedule_from_csv("0F0,0F1,0R1,0B1,0R0,0B0\n");
  EXPECT_EQ(peaks_of(schedule, Rematerialize::Never)[0].graphs, 1);
}

TEST(MemoryTest, CountsStagesOfOneRankEachForItself) {
  auto peaks =
      peaks_of(schedule_from_csv("0F0,0F1,1F0,1B0,1F1,1B1,0B0,0B1\n"), Rematerialize::Never);
  EXPECT_EQ(peaks[0].micro_batches, 2);
  EXPECT_EQ(peaks[1].micro_batches, 1);
}

TEST(MemoryTest, NeedsACostForEachStage) {
  auto programs = lower(make_fill_drain(3, 1), Rematerialize::Never);
  EXPECT_THAT(
      error_of([&] { in_flight_peaks(programs, uniform_stage_costs(2, 1, 1)); }),
      HasSubstr("needs the cost of its stage"));
}

}  // namespace
}  // namespace gpipe::plan
