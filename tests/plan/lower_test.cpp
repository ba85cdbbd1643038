#include "gpipe/plan/lower.h"

#include <algorithm>

#include "gpipe/plan/schedules.h"
#include "tests/plan/testing.h"

namespace gpipe::plan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

int count(const Program& program, Op op) {
  return static_cast<int>(std::count_if(
      program.begin(), program.end(), [&](const Action& action) { return action.op == op; }));
}

std::vector<int> recomputes(const Schedule& schedule, Rematerialize mode) {
  std::vector<int> counts;
  for (const Program& program : lower(schedule, mode))
    counts.push_back(count(program, Op::Recompute));
  return counts;
}

TEST(LowerTest, ProgramsAreAsDrawn) {
  EXPECT_EQ(
      to_lines(lower(make_fill_drain(2, 2), Rematerialize::Always)),
      golden("programs_gpipe_k2_m2_always.txt"));
  EXPECT_EQ(
      to_lines(lower(make_fill_drain(2, 2), Rematerialize::ExceptLast)),
      golden("programs_gpipe_k2_m2_except_last.txt"));
  EXPECT_EQ(
      to_lines(lower(make_one_f_one_b(2, 3), Rematerialize::ExceptLast)),
      golden("programs_1f1b_k2_m3_except_last.txt"));
  EXPECT_EQ(
      to_lines(lower(schedule_from_csv(golden("zero_bubble_k2_m2.csv")), Rematerialize::Never)),
      golden("programs_zero_bubble_k2_m2_never.txt"));
}

TEST(LowerTest, CountsRecomputesInFillDrain) {
  Schedule schedule = make_fill_drain(3, 4);
  EXPECT_THAT(recomputes(schedule, Rematerialize::Always), ElementsAre(4, 4, 4));
  EXPECT_THAT(recomputes(schedule, Rematerialize::ExceptLast), ElementsAre(3, 3, 3));
  EXPECT_THAT(recomputes(schedule, Rematerialize::Never), ElementsAre(0, 0, 0));
  EXPECT_THAT(recomputes(make_fill_drain(2, 1), Rematerialize::ExceptLast), ElementsAre(0, 0));
  EXPECT_THAT(recomputes(make_fill_drain(2, 1), Rematerialize::Always), ElementsAre(1, 1));
}

/// The last stage of 1F1B runs each backward right after its forward.
TEST(LowerTest, CountsRecomputesInOneFOneB) {
  Schedule schedule = make_one_f_one_b(3, 4);
  EXPECT_THAT(recomputes(schedule, Rematerialize::Always), ElementsAre(4, 4, 4));
  EXPECT_THAT(recomputes(schedule, Rematerialize::ExceptLast), ElementsAre(4, 4, 0));
}

TEST(LowerTest, LeavesExplicitRecomputesWhereTheyAre) {
  Schedule schedule = schedule_from_csv("0F0,0R0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
  EXPECT_EQ(
      to_line(lower(schedule, Rematerialize::Always)[0]),
      "0F0 0SEND_F0 0R0 0F1 0SEND_F1 0RECV_B0 0B0 0R1 0RECV_B1 0B1");
  EXPECT_THAT(recomputes(schedule, Rematerialize::Never), ElementsAre(1, 0));
}

TEST(LowerTest, NeighboursOnOneRankHandOverDirectly) {
  Schedule schedule = schedule_from_csv("0F0,1F0,1B0,0B0\n2F0,2B0\n");
  EXPECT_EQ(
      to_lines(lower(schedule, Rematerialize::Never)),
      "0F0 1F0 1SEND_F0 1RECV_B0 1B0 0B0\n2RECV_F0 2F0 2B0 2SEND_B0\n");
}

/// Stage 1 takes micro-batches in the other order than stage 0 makes them: the first receive must
/// come early, or the channel would deliver the wrong one.
TEST(LowerTest, ReceivesComeInTheOrderOfTheirSends) {
  Schedule schedule = schedule_from_csv("0F0,0F1,0B0,0B1\n1F1,1F0,1B0,1B1\n");
  EXPECT_EQ(
      to_line(lower(schedule, Rematerialize::Never)[1]),
      "1RECV_F0 1RECV_F1 1F1 1F0 1B0 1SEND_B0 1B1 1SEND_B1");
}

TEST(LowerTest, RefusesABadSchedule) {
  Schedule schedule = make_fill_drain(2, 2);
  schedule.ranks[1].pop_back();
  EXPECT_THAT(
      error_of([&] { lower(schedule, Rematerialize::Never); }), HasSubstr("1B0 is missing"));
}

struct Case {
  const char* schedule;
  int num_stages;
  int num_micro_batches;
  Rematerialize mode;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* name : {"gpipe", "1f1b"}) {
    for (int num_stages : {1, 2, 5}) {
      for (int num_micro_batches : {1, 3, 8}) {
        for (auto mode : {Rematerialize::Always, Rematerialize::ExceptLast, Rematerialize::Never})
          cases.push_back({name, num_stages, num_micro_batches, mode});
      }
    }
  }
  return cases;
}

class EveryProgramTest : public testing::TestWithParam<Case> {
 protected:
  Schedule schedule =
      make_schedule(GetParam().schedule, GetParam().num_stages, GetParam().num_micro_batches);
  std::vector<Program> programs = lower(schedule, GetParam().mode);
};

TEST_P(EveryProgramTest, IsValid) {
  EXPECT_NO_THROW(validate_programs(programs));
}

TEST_P(EveryProgramTest, KeepsTheOrderOfTheSchedule) {
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    std::vector<Action> kept;
    std::copy_if(
        programs[rank].begin(),
        programs[rank].end(),
        std::back_inserter(kept),
        [](const Action& action) { return is_compute(action.op) && action.op != Op::Recompute; });
    EXPECT_EQ(kept, schedule.ranks[rank]);
  }
}

TEST_P(EveryProgramTest, SendsAndReceivesOnceForEachBorderAndMicroBatch) {
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    int to_the_right = stage + 1 < schedule.num_stages ? schedule.num_micro_batches : 0;
    int to_the_left = stage > 0 ? schedule.num_micro_batches : 0;
    EXPECT_EQ(count(programs[stage], Op::SendActivation), to_the_right);
    EXPECT_EQ(count(programs[stage], Op::RecvGradient), to_the_right);
    EXPECT_EQ(count(programs[stage], Op::SendGradient), to_the_left);
    EXPECT_EQ(count(programs[stage], Op::RecvActivation), to_the_left);
  }
}

TEST_P(EveryProgramTest, ReceivesDirectlyBeforeUseAndRecomputesBeforeTheGradientArrives) {
  for (const Program& program : programs) {
    for (std::size_t position = 0; position + 1 < program.size(); ++position) {
      auto [op, stage, micro_batch] = program[position];
      Action next = program[position + 1];
      if (op == Op::RecvActivation) {
        EXPECT_EQ(next, (Action{Op::Forward, stage, micro_batch}));
      } else if (op == Op::RecvGradient) {
        EXPECT_EQ(next, (Action{Op::Backward, stage, micro_batch}));
      } else if (op == Op::Recompute && stage + 1 < schedule.num_stages) {
        EXPECT_EQ(next, (Action{Op::RecvGradient, stage, micro_batch}));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, EveryProgramTest, testing::ValuesIn(all_cases()), [](const auto& param) {
      const Case& c = param.param;
      return std::string(c.schedule) + "_k" + std::to_string(c.num_stages) + "_m" +
             std::to_string(c.num_micro_batches) + "_" + std::string(to_string(c.mode));
    });

TEST(LowerTest, ProgramsOfIrregularSchedulesAreValid) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    Schedule schedule = random_schedule(random);
    for (auto mode : {Rematerialize::Always, Rematerialize::ExceptLast, Rematerialize::Never})
      ASSERT_NO_THROW(validate_programs(lower(schedule, mode))) << to_csv(schedule);
  }
}

TEST(LowerTest, FillDrainStandsSendsThatWait) {
  for (int num_stages : {1, 2, 4}) {
    for (int num_micro_batches : {1, 2, 6}) {
      auto programs = lower(make_fill_drain(num_stages, num_micro_batches), Rematerialize::Always);
      EXPECT_NO_THROW(validate_programs(programs, Sends::Rendezvous));
    }
  }
}

TEST(LowerTest, OneFOneBDoesNotStandSendsThatWait) {
  auto programs = lower(make_one_f_one_b(2, 3), Rematerialize::Never);
  EXPECT_NO_THROW(validate_programs(programs, Sends::Asynchronous));
  EXPECT_THAT(
      error_of([&] { validate_programs(programs, Sends::Rendezvous); }),
      AllOf(
          HasSubstr("deadlock"),
          HasSubstr("rank 0 at 0SEND_F1 waits for its receive"),
          HasSubstr("rank 1 at 1SEND_B0 waits for its receive")));
}

// `|` stands for a line end.
struct BadPrograms {
  const char* name;
  const char* lines;
  const char* needed_text;
};

class BadProgramsTest : public testing::TestWithParam<BadPrograms> {};

TEST_P(BadProgramsTest, AreRefused) {
  std::string lines = GetParam().lines;
  std::replace(lines.begin(), lines.end(), '|', '\n');
  EXPECT_THAT(
      error_of([&] { validate_programs(programs_from(lines)); }),
      HasSubstr(GetParam().needed_text));
}

INSTANTIATE_TEST_SUITE_P(
    Programs,
    BadProgramsTest,
    testing::Values(
        BadPrograms{
            "MissingReceive",
            "0F0 0SEND_F0 0RECV_B0 0B0|1F0 1B0 1SEND_B0",
            "1RECV_F0 is missing on rank 1"},
        BadPrograms{
            "MissingSend",
            "0F0 0SEND_F0 0RECV_B0 0B0|1RECV_F0 1F0 1B0",
            "1SEND_B0 is missing on rank 1"},
        BadPrograms{
            "MissingCompute",
            "0F0 0SEND_F0 0RECV_B0|1RECV_F0 1F0 1B0 1SEND_B0",
            "0B0 is missing on rank 0"},
        BadPrograms{"NeedlessSend", "0F0 0SEND_F0 1F0 1B0 0B0", "0SEND_F0 is needless on rank 0"},
        BadPrograms{"BeyondTheModel", "0RECV_F0 0F0 0B0", "0RECV_F0 is needless on rank 0"},
        BadPrograms{
            "OrderOfMessages",
            "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1|"
            "1RECV_F1 1RECV_F0 1F0 1F1 1B0 1SEND_B0 1B1 1SEND_B1",
            "0SEND_F0 is sent where 1RECV_F1 is received"},
        BadPrograms{
            "ReceiveAfterUse",
            "0F0 0SEND_F0 0RECV_B0 0B0|1F0 1RECV_F0 1B0 1SEND_B0",
            "rank 1 at 1F0 waits for 1RECV_F0"},
        BadPrograms{
            "SendBeforeItsValue",
            "0SEND_F0 0F0 0RECV_B0 0B0|1RECV_F0 1F0 1B0 1SEND_B0",
            "rank 0 at 0SEND_F0 waits for 0F0"},
        BadPrograms{
            "BothReceiveFirst",
            "0F0 0RECV_B0 0SEND_F0 0B0|1RECV_F0 1F0 1B0 1SEND_B0",
            "rank 0 at 0RECV_B0 waits for 1SEND_B0 of rank 1"}),
    [](const auto& bad) { return bad.param.name; });

TEST(RematerializeTest, ReadsBackItsNames) {
  for (auto mode : {Rematerialize::Always, Rematerialize::ExceptLast, Rematerialize::Never})
    EXPECT_EQ(rematerialize_from_string(to_string(mode)), mode);
  EXPECT_EQ(to_string(Rematerialize::ExceptLast), "except_last");
  EXPECT_THAT(
      error_of([] { rematerialize_from_string("except-lats"); }),
      AllOf(HasSubstr("`except-lats`"), HasSubstr("did you mean `except_last`?")));
}

}  // namespace
}  // namespace gpipe::plan
