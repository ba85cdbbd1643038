#include "app/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gpipe::app {
namespace {

std::vector<double> rates(const LrSchedule& schedule, int64_t steps) {
  std::vector<double> rates;
  for (int64_t step = 0; step < steps; ++step)
    rates.push_back(schedule.at(step));
  return rates;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], 1e-12) << "step " << i;
}

TEST(LrScheduleTest, ConstantStays) {
  expect_near(rates({.kind = "constant", .peak = 0.5, .total_steps = 3}, 4), {0.5, 0.5, 0.5, 0.5});
}

TEST(LrScheduleTest, WarmsUpInALine) {
  expect_near(
      rates({.kind = "constant", .peak = 1, .warmup_steps = 3, .total_steps = 5}, 5),
      {0.25, 0.5, 0.75, 1, 1});
}

TEST(LrScheduleTest, LinearReachesItsEndAndStays) {
  expect_near(
      rates({.kind = "linear", .peak = 1, .final_share = 0.2, .total_steps = 5}, 7),
      {1, 0.8, 0.6, 0.4, 0.2, 0.2, 0.2});
}

TEST(LrScheduleTest, CosineIsHalfwayInTheMiddle) {
  expect_near(
      rates({.kind = "cosine", .peak = 2, .warmup_steps = 1, .total_steps = 6}, 6),
      {1, 2, 1 + std::sqrt(0.5), 1, 1 - std::sqrt(0.5), 0});
}

TEST(LrScheduleTest, WarmUpMayBeAsLongAsTheRun) {
  for (const auto& kind : LrSchedule::kinds())
    expect_near(
        rates({.kind = kind, .peak = 1, .warmup_steps = 2, .total_steps = 2}, 3),
        {1.0 / 3, 2.0 / 3, 1});
}

}  // namespace
}  // namespace gpipe::app
