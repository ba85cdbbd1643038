#include "gpipe/plan/schedule.h"

#include "gpipe/plan/action_index.h"
#include "gpipe/plan/schedules.h"
#include "tests/plan/testing.h"

namespace gpipe::plan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Action action(const char* text) {
  return action_from_string(text);
}

std::string predecessors_of(const Schedule& schedule, const char* text) {
  return to_line(predecessors(schedule, action(text)));
}

TEST(ScheduleTest, StageRanks) {
  EXPECT_THAT(stage_ranks(schedule_from_csv("0F0,2F0,2B0,0B0\n1F0,1B0\n")), ElementsAre(0, 1, 0));
}

TEST(ScheduleTest, PredecessorsOfWholeBackwards) {
  Schedule schedule = make_fill_drain(3, 2);
  EXPECT_EQ(predecessors_of(schedule, "0F1"), "");
  EXPECT_EQ(predecessors_of(schedule, "1F1"), "0F1");
  EXPECT_EQ(predecessors_of(schedule, "2B1"), "2F1");
  EXPECT_EQ(predecessors_of(schedule, "0B1"), "0F1 1B1");
  EXPECT_EQ(predecessors_of(schedule, "1R0"), "1F0");
}

TEST(ScheduleTest, PredecessorsOfSplitBackwardsAndRecomputes) {
  Schedule schedule = schedule_from_csv("0F0,0R0,0B0\n1F0,1I0,1W0\n2F0,2B0\n");
  EXPECT_EQ(predecessors_of(schedule, "0B0"), "0F0 0R0 1I0");
  EXPECT_EQ(predecessors_of(schedule, "1I0"), "1F0 2B0");
  EXPECT_EQ(predecessors_of(schedule, "1W0"), "1I0");
}

TEST(ScheduleTest, PredecessorsInProgramsGoThroughMessages) {
  ActionLists programs = lower(make_fill_drain(2, 1), Rematerialize::Always);
  ActionIndex index(2, 1, programs);
  auto line = [&](const char* text) {
    Predecessors found = index.predecessors(action(text));
    return to_line({found.begin(), found.end()});
  };
  EXPECT_EQ(line("0SEND_F0"), "0F0");
  EXPECT_EQ(line("1RECV_F0"), "0SEND_F0");
  EXPECT_EQ(line("1F0"), "1RECV_F0");
  EXPECT_EQ(line("1B0"), "1F0 1R0");
  EXPECT_EQ(line("1SEND_B0"), "1B0");
  EXPECT_EQ(line("0RECV_B0"), "1SEND_B0");
  EXPECT_EQ(line("0B0"), "0F0 0R0 0RECV_B0");
}

TEST(ActionIndexTest, FindsPositions) {
  Schedule schedule = make_one_f_one_b(2, 3);
  ActionIndex index(2, 3, schedule.ranks);
  EXPECT_EQ(index.position(action("0F0")), 0);
  EXPECT_EQ(index.position(action("0B2")), 5);
  EXPECT_EQ(index.position(action("1B0")), 1);
  EXPECT_EQ(index.rank(action("1B0")), 1);
  EXPECT_FALSE(index.contains(action("0R0")));
  EXPECT_FALSE(index.contains(action("2F0")));
  EXPECT_FALSE(index.contains(action("0F3")));
  EXPECT_FALSE(index.contains(Action{Op::Forward, -1, 0}));
}

// One line a rank; `|` stands for a line end.
struct BadSchedule {
  const char* name;
  const char* csv;
  std::vector<const char*> needed_texts;
};

class BadScheduleTest : public testing::TestWithParam<BadSchedule> {};

TEST_P(BadScheduleTest, IsRefusedByName) {
  std::string csv = GetParam().csv;
  std::replace(csv.begin(), csv.end(), '|', '\n');
  std::string text = error_of([&] { validate(schedule_from_csv(csv)); });
  EXPECT_THAT(text, HasSubstr("[schedule]"));
  for (const char* needed : GetParam().needed_texts)
    EXPECT_THAT(text, HasSubstr(needed));
}

INSTANTIATE_TEST_SUITE_P(
    Schedules,
    BadScheduleTest,
    testing::Values(
        BadSchedule{"MissingForward", "0F0,0B0,0B1|1F0,1F1,1B0,1B1", {"0F1 is missing on rank 0"}},
        BadSchedule{"MissingBackward", "0F0,0F1,0B0|1F0,1F1,1B0,1B1", {"0B1 is missing on rank 0"}},
        BadSchedule{"MissingWeights", "0F0,0I0", {"0W0 is missing"}},
        BadSchedule{"MissingInputs", "0F0,0W0", {"0I0 is missing"}},
        BadSchedule{"WholeAndSplit", "0F0,0B0,0I0,0W0", {"0B0", "I and W"}},
        BadSchedule{"Twice", "0F0,0B0,0F0", {"0F0 is listed twice", "positions 0 and 2"}},
        BadSchedule{"TwoRecomputes", "0F0,0R0,0R0,0B0", {"0R0 is listed twice"}},
        BadSchedule{"StageOnTwoRanks", "0F0|0B0", {"0B0 is misplaced on rank 1", "rank 0"}},
        BadSchedule{"StageOnNoRank", "0F0,0B0|2F0,2B0", {"stage 1 of 3 is on no rank"}},
        BadSchedule{"BackwardFirst", "0B0,0F0", {"0B0 is misplaced", "before 0F0"}},
        BadSchedule{"RecomputeFirst", "0R0,0F0,0B0", {"0R0 is misplaced", "before 0F0"}},
        BadSchedule{"RecomputeLate", "0F0,0B0,0R0", {"0B0 is misplaced", "before 0R0"}},
        BadSchedule{"WeightsFirst", "0F0,0W0,0I0", {"0W0 is misplaced", "before 0I0"}},
        BadSchedule{
            "WaitsForEachOther",
            "0F0,0B0,0F1,0B1|1F0,1F1,1B0,1B1",
            {"deadlock",
             "rank 0 at 0B0 waits for 1B0 of rank 1",
             "rank 1 at 1F1 waits for 0F1 of rank 0"}},
        BadSchedule{"WaitsForItself", "1F0,0F0,1B0,0B0", {"rank 0 at 1F0 waits for 0F0"}}),
    [](const auto& bad) { return bad.param.name; });

TEST(ScheduleTest, RefusesWhatIsOutOfRange) {
  auto text_of = [](std::vector<std::vector<Action>> ranks) {
    return error_of([&] { validate({2, 2, ranks}); });
  };
  EXPECT_THAT(text_of({{{Op::Forward, 2, 0}}}), HasSubstr("2F0 on rank 0 is outside of 2 stages"));
  EXPECT_THAT(text_of({{{Op::Forward, 0, 2}}}), HasSubstr("0F2 on rank 0"));
  EXPECT_THAT(text_of({{{Op::Forward, -1, 0}}}), HasSubstr("-1F0 on rank 0"));
  EXPECT_THAT(text_of({}), HasSubstr("0 ranks"));
  EXPECT_THAT(error_of([] { validate({0, 1, {{}}}); }), HasSubstr("0 stages"));
  EXPECT_THAT(error_of([] { validate({1, 0, {{}}}); }), HasSubstr("0 micro-batches"));
}

TEST(ScheduleTest, RefusesMessages) {
  Schedule schedule = make_fill_drain(2, 1);
  schedule.ranks[0].push_back({Op::SendActivation, 0, 0});
  EXPECT_THAT(
      error_of([&] { validate(schedule); }),
      AllOf(HasSubstr("0SEND_F0 on rank 0"), HasSubstr("lowering")));
}

TEST(ScheduleTest, NamesAtMost16StuckRanks) {
  // Rank 0 runs its first backward before its second forward, which all other ranks wait for.
  Schedule stuck = make_fill_drain(20, 2);
  stuck.ranks[0] = {action("0F0"), action("0B0"), action("0F1"), action("0B1")};
  std::string text = error_of([&] { validate(stuck); });
  EXPECT_THAT(text, HasSubstr("rank 0 at 0B0 waits for 1B0"));
  EXPECT_THAT(text, HasSubstr("rank 15 at 15F1"));
  EXPECT_THAT(text, testing::Not(HasSubstr("rank 16 at")));
  EXPECT_THAT(text, HasSubstr("and 4 more ranks"));
}

TEST(ScheduleTest, AcceptsIrregularSchedules) {
  EXPECT_NO_THROW(validate(schedule_from_csv(golden("zero_bubble_k2_m2.csv"))));
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Schedule schedule = random_schedule(random);
    ASSERT_NO_THROW(validate(schedule)) << to_csv(schedule);
  }
}

/// What a list without its last action lacks is noticed, whichever rank it is taken from.
TEST(ScheduleTest, RefusesAnyScheduleThatLacksAnAction) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    Schedule schedule = random_schedule(random);
    for (auto& actions : schedule.ranks) {
      if (actions.empty())
        continue;
      Action last = actions.back();
      actions.pop_back();
      EXPECT_THROW(validate(schedule), Error) << to_string(last) << "\n" << to_csv(schedule);
      actions.push_back(last);
    }
  }
}

TEST(ScheduleCsvTest, ReadsBackWhatIsWritten) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    Schedule schedule = random_schedule(random);
    while (schedule.ranks.back().empty())
      schedule.ranks.pop_back();
    EXPECT_EQ(schedule_from_csv(to_csv(schedule)), schedule);
  }
}

TEST(ScheduleCsvTest, SkipsIdleSlotsBlanksAndLastLines) {
  Schedule schedule = schedule_from_csv(" 0F0 ,,0B0,\r\n,1F0,1B0\r\n\n\n");
  EXPECT_EQ(to_csv(schedule), "0F0,0B0\n1F0,1B0\n");
  EXPECT_EQ(schedule.num_stages, 2);
  EXPECT_EQ(schedule.num_micro_batches, 1);
}

TEST(ScheduleCsvTest, KeepsARankWithoutActions) {
  EXPECT_EQ(schedule_from_csv("0F0,0B0\n\n1F0,1B0").num_ranks(), 3);
}

TEST(ScheduleCsvTest, NamesLineAndColumn) {
  EXPECT_THAT(
      error_of([] { schedule_from_csv("0F0,0B0\n1F0, 1Q0,1B0\n"); }),
      AllOf(HasSubstr("`1Q0` is not an action"), HasSubstr("(line 2, column 6)")));
  EXPECT_THAT(
      error_of([] { schedule_from_csv("0F0,0SEND_F0\n"); }),
      AllOf(HasSubstr("`0SEND_F0` is not a compute action"), HasSubstr("(line 1, column 5)")));
  EXPECT_THAT(error_of([] { schedule_from_csv("\n"); }), HasSubstr("no action"));
  EXPECT_THAT(error_of([] { schedule_from_csv(""); }), HasSubstr("no action"));
}

}  // namespace
}  // namespace gpipe::plan
