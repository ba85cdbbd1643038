#include "gpipe/plan/simulator.h"

#include <algorithm>

#include "gpipe/plan/schedules.h"
#include "tests/plan/testing.h"

namespace gpipe::plan {
namespace {

using testing::HasSubstr;

constexpr double kTolerance = 1e-12;

Simulation simulate_uniform(
    const Schedule& schedule,
    double forward_seconds,
    double backward_seconds,
    Rematerialize mode = Rematerialize::Never) {
  return simulate(
      lower(schedule, mode),
      uniform_stage_costs(schedule.num_stages, forward_seconds, backward_seconds));
}

struct Case {
  const char* schedule;
  int num_stages;
  int num_micro_batches;
};

class UniformCostTest : public testing::TestWithParam<Case> {
 protected:
  int num_stages = GetParam().num_stages;
  int num_micro_batches = GetParam().num_micro_batches;
  int num_slots = num_micro_batches + num_stages - 1;
  Schedule schedule = make_schedule(GetParam().schedule, num_stages, num_micro_batches);
};

/// Step (M + K - 1)(F + B), bubble (K - 1) / (M + K - 1), for fill-drain and for 1F1B.
TEST_P(UniformCostTest, StepAndBubbleAreThoseOfTheFormula) {
  double bubble = static_cast<double>(num_stages - 1) / num_slots;
  for (double backward_seconds : {1.0, 2.0, 0.3}) {
    Simulation simulation = simulate_uniform(schedule, 1, backward_seconds);
    EXPECT_NEAR(simulation.step_seconds, num_slots * (1 + backward_seconds), 1e-10);
    EXPECT_NEAR(simulation.bubble_ratio, bubble, kTolerance);
  }
}

TEST_P(UniformCostTest, EveryRankIsBusyForAllMicroBatches) {
  Simulation simulation = simulate_uniform(schedule, 1, 2, Rematerialize::Always);
  for (int rank = 0; rank < num_stages; ++rank)
    EXPECT_NEAR(simulation.timeline.busy_seconds(rank), num_micro_batches * 4.0, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Schedules,
    UniformCostTest,
    testing::Values(
        Case{"gpipe", 4, 8},
        Case{"gpipe", 1, 5},
        Case{"gpipe", 4, 1},
        Case{"gpipe", 3, 1000},
        Case{"1f1b", 4, 8},
        Case{"1f1b", 1, 5},
        Case{"1f1b", 4, 1},
        Case{"1f1b", 8, 3}),
    [](const auto& c) {
      return std::string(c.param.schedule) + "_k" + std::to_string(c.param.num_stages) + "_m" +
             std::to_string(c.param.num_micro_batches);
    });

TEST(SimulatorTest, FiguresOfThePaper) {
  EXPECT_NEAR(simulate_uniform(make_fill_drain(4, 8), 1, 1).bubble_ratio, 3.0 / 11, kTolerance);
  EXPECT_NEAR(simulate_uniform(make_fill_drain(4, 1), 1, 1).bubble_ratio, 0.75, kTolerance);
  EXPECT_NEAR(simulate_uniform(make_fill_drain(1, 8), 1, 1).bubble_ratio, 0, kTolerance);
  EXPECT_LT(simulate_uniform(make_fill_drain(4, 4096), 1, 1).bubble_ratio, 0.001);
}

TEST(SimulatorTest, ReportsPeaks) {
  Simulation simulation = simulate_uniform(make_one_f_one_b(4, 8), 1, 1);
  for (int stage = 0; stage < 4; ++stage)
    EXPECT_EQ(simulation.peaks[stage].micro_batches, 4 - stage);
}

/// Recomputes of all but the last stage run while they would wait: (M + K - 1)(F + B) + M R, where
/// recomputes behind the gradient would take (M + K - 1)(F + B + R).
TEST(SimulatorTest, RecomputesHideInTheBubble) {
  Simulation simulation = simulate_uniform(make_fill_drain(4, 8), 1, 2, Rematerialize::Always);
  EXPECT_NEAR(simulation.step_seconds, 11 * 3 + 8, kTolerance);
}

/// The step is sum(t) + (M - 1) max(t) in each direction where one stage is the slowest.
TEST(SimulatorTest, TheSlowestStageSetsThePace) {
  auto stages = uniform_stage_costs(3, 1, 2);
  stages[1].forward_seconds = 5;
  stages[1].backward_seconds = 10;
  Simulation simulation = simulate(lower(make_fill_drain(3, 4), Rematerialize::Never), stages);
  EXPECT_NEAR(simulation.step_seconds, 7 + 3 * 5 + 14 + 3 * 10, kTolerance);
  EXPECT_NEAR(
      simulation.bubble_ratio, 1 - (2 * 4 * 3.0 + 4 * 15) / (3 * simulation.step_seconds), 1e-12);
}

TEST(SimulatorTest, StandsZeroCosts) {
  Simulation simulation = simulate_uniform(make_one_f_one_b(3, 2), 0, 0);
  EXPECT_EQ(simulation.step_seconds, 0);
  EXPECT_EQ(simulation.bubble_ratio, 0);
}

/// K=2, M=1: F, hop, F B, hop, B. The border is 100 bytes to the right and the same to the left.
TEST(SimulatorTest, MessagesTakeLatencyAndTransfer) {
  auto stages = uniform_stage_costs(2, 1, 2);
  stages[0].output_bytes = stages[1].input_bytes = 100;
  Simulation simulation =
      simulate(lower(make_fill_drain(2, 1), Rematerialize::Never), stages, {200, 0.25});
  EXPECT_NEAR(simulation.step_seconds, 6 + 2 * (0.25 + 0.5), kTolerance);
}

/// A transfer of 3 s and forwards of 1 s: the link is the bottleneck, messages queue behind each
/// other, while latency only delays them.
TEST(SimulatorTest, MessagesOfAChannelQueue) {
  auto stages = uniform_stage_costs(2, 1, 0);
  stages[1].input_bytes = 3;
  Simulation simulation =
      simulate(lower(make_fill_drain(2, 4), Rematerialize::Never), stages, {1, 0.5});
  // Forwards at 1.., messages leave at 1, 4, 7, 10 and take 3.5; the last forward ends at 14.5.
  const auto& spans = simulation.timeline.ranks[1];
  EXPECT_NEAR(spans[1].end_seconds, 5.5, kTolerance);
  EXPECT_NEAR(spans[7].end_seconds, 14.5, kTolerance);
}

TEST(SimulatorTest, ComputingGoesOnWhileMessagesTravel) {
  auto stages = uniform_stage_costs(2, 1, 0);
  stages[1].input_bytes = 1;
  Simulation simulation =
      simulate(lower(make_fill_drain(2, 8), Rematerialize::Never), stages, {1, 0});
  EXPECT_NEAR(simulation.timeline.ranks[0][14].end_seconds, 8, kTolerance)
      << "the sender waited for its messages";
}

TEST(SimulatorTest, SplitsBackwardsIntoInputsAndWeights) {
  Simulation simulation = simulate(
      lower(schedule_from_csv(golden("zero_bubble_k2_m2.csv")), Rematerialize::Never),
      uniform_stage_costs(2, 1, 2));
  // Rank 1: F0 1-2, I0 2-3, F1 3-4, I1 4-5, W 5-7; rank 0 idles 2-3 only.
  EXPECT_NEAR(simulation.step_seconds, 7, kTolerance);
  EXPECT_NEAR(simulation.timeline.busy_seconds(0), 6, kTolerance);
}

TEST(SimulatorTest, SpansFollowThePrograms) {
  auto programs = lower(make_one_f_one_b(3, 4), Rematerialize::Always);
  Timeline timeline = simulate(programs, uniform_stage_costs(3, 1, 2)).timeline;
  ASSERT_EQ(timeline.ranks.size(), programs.size());
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    ASSERT_EQ(timeline.ranks[rank].size(), programs[rank].size());
    for (std::size_t position = 0; position < programs[rank].size(); ++position) {
      const Span& span = timeline.ranks[rank][position];
      EXPECT_EQ(span.action, programs[rank][position]);
      EXPECT_LE(span.start_seconds, span.end_seconds);
      double previous = position > 0 ? timeline.ranks[rank][position - 1].end_seconds : 0;
      EXPECT_GE(span.start_seconds, previous);
    }
  }
}

TEST(SimulatorTest, ReportsADeadlockByItsStuckActions) {
  auto programs = programs_from(
      "0F0 0RECV_B0 0SEND_F0 0B0\n"
      "1RECV_F0 1F0 1B0 1SEND_B0\n");
  std::string text = error_of([&] { simulate(programs, uniform_stage_costs(2, 1, 1)); });
  EXPECT_THAT(text, HasSubstr("[simulator] deadlock"));
  EXPECT_THAT(text, HasSubstr("rank 0 at 0RECV_B0 waits for 1SEND_B0 of rank 1"));
  EXPECT_THAT(text, HasSubstr("rank 1 at 1RECV_F0 waits for 0SEND_F0 of rank 0"));
}

TEST(SimulatorTest, NeedsACostForEachStage) {
  auto programs = lower(make_fill_drain(2, 1), Rematerialize::Never);
  EXPECT_THROW(simulate(programs, uniform_stage_costs(1, 1, 1)), Error);
  EXPECT_THROW(simulate(programs, uniform_stage_costs(3, 1, 1)), Error);
}

/// No schedule beats the busiest rank, nor the longest chain of one micro-batch.
TEST(SimulatorTest, IrregularSchedulesTakeNoLessThanTheirBounds) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    Schedule schedule = random_schedule(random);
    Simulation simulation = simulate_uniform(schedule, 1, 2);
    double busiest = 0;
    for (int rank = 0; rank < schedule.num_ranks(); ++rank)
      busiest = std::max(busiest, simulation.timeline.busy_seconds(rank));
    EXPECT_GE(simulation.step_seconds, busiest - kTolerance);
    EXPECT_GE(simulation.step_seconds, schedule.num_stages * 2 - kTolerance);
    EXPECT_LE(simulation.step_seconds, schedule.num_stages * schedule.num_micro_batches * 4.0);
  }
}

}  // namespace
}  // namespace gpipe::plan
