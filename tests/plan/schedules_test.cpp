#include "gpipe/plan/schedules.h"

#include <algorithm>

#include "tests/plan/testing.h"

namespace gpipe::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Shape {
  const char* schedule;
  int num_stages;
  int num_micro_batches;

  std::string name() const {
    return std::string(schedule) + "_k" + std::to_string(num_stages) + "_m" +
           std::to_string(num_micro_batches);
  }
};

std::string name_of_shape(const testing::TestParamInfo<Shape>& shape) {
  return shape.param.name();
}

class GoldenScheduleTest : public testing::TestWithParam<Shape> {};

TEST_P(GoldenScheduleTest, IsAsDrawn) {
  auto [name, num_stages, num_micro_batches] = GetParam();
  EXPECT_EQ(
      to_csv(make_schedule(name, num_stages, num_micro_batches)),
      golden(GetParam().name() + ".csv"));
}

INSTANTIATE_TEST_SUITE_P(
    Schedules,
    GoldenScheduleTest,
    testing::Values(
        Shape{"gpipe", 1, 3},
        Shape{"gpipe", 3, 4},
        Shape{"1f1b", 1, 3},
        Shape{"1f1b", 4, 2},
        Shape{"1f1b", 4, 8}),
    name_of_shape);

std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes;
  for (const char* name : {"gpipe", "1f1b"}) {
    for (int num_stages : {1, 2, 3, 4, 7}) {
      for (int num_micro_batches : {1, 2, 3, 4, 9})
        shapes.push_back({name, num_stages, num_micro_batches});
    }
  }
  return shapes;
}

class EveryScheduleTest : public testing::TestWithParam<Shape> {
 protected:
  Schedule schedule =
      make_schedule(GetParam().schedule, GetParam().num_stages, GetParam().num_micro_batches);
};

TEST_P(EveryScheduleTest, IsValidWithOneStageARank) {
  validate(schedule);
  EXPECT_EQ(schedule.num_ranks(), schedule.num_stages);
  std::vector<int> ranks = stage_ranks(schedule);
  for (int stage = 0; stage < schedule.num_stages; ++stage)
    EXPECT_EQ(ranks[stage], stage);
}

TEST_P(EveryScheduleTest, BackwardsComeInOneOrderOnAllStages) {
  bool is_fill_drain = std::string(GetParam().schedule) == "gpipe";
  std::vector<int> expected;
  for (int micro_batch = 0; micro_batch < schedule.num_micro_batches; ++micro_batch)
    expected.push_back(is_fill_drain ? schedule.num_micro_batches - 1 - micro_batch : micro_batch);
  for (const auto& actions : schedule.ranks) {
    std::vector<int> order;
    for (const Action& action : actions) {
      if (action.op == Op::Backward)
        order.push_back(action.micro_batch);
    }
    EXPECT_EQ(order, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, EveryScheduleTest, testing::ValuesIn(all_shapes()), name_of_shape);

TEST(SchedulesTest, NamesAreKnown) {
  EXPECT_THAT(schedule_names(), ElementsAre("gpipe", "1f1b"));
  EXPECT_EQ(make_schedule("gpipe", 3, 5), make_fill_drain(3, 5));
  EXPECT_EQ(make_schedule("1f1b", 3, 5), make_one_f_one_b(3, 5));
}

TEST(SchedulesTest, UnknownNameGivesTheNearestAndAll) {
  std::string text = error_of([] { make_schedule("1f1v", 2, 2); });
  EXPECT_THAT(text, HasSubstr("unknown schedule `1f1v`"));
  EXPECT_THAT(text, HasSubstr("did you mean `1f1b`?"));
  EXPECT_THAT(text, HasSubstr("gpipe, 1f1b"));
}

TEST(SchedulesTest, RefusesNumbersBelowOne) {
  for (const std::string& name : schedule_names()) {
    EXPECT_THAT(error_of([&] { make_schedule(name, 0, 4); }), HasSubstr("0 stages")) << name;
    EXPECT_THAT(error_of([&] { make_schedule(name, 2, 0); }), HasSubstr("0 micro-batches"));
  }
}

}  // namespace
}  // namespace gpipe::plan
