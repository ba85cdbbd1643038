#include <gpipe/plan/schedules.h>
#include <gtest/gtest.h>

#include <iostream>

int main() {
  const auto schedule = gpipe::plan::make_schedule("1f1b", 2, 4);
  std::cout << gpipe::plan::to_csv(schedule);
  return schedule.num_ranks() == 2 ? 0 : 1;
}
