#include "app/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gpipe::app {

double LrSchedule::at(int64_t step) const {
  if (step < warmup_steps)
    return peak * static_cast<double>(step + 1) / static_cast<double>(warmup_steps + 1);
  if (kind == "constant")
    return peak;
  const auto length = static_cast<double>(std::max<int64_t>(total_steps - 1 - warmup_steps, 1));
  const double done = std::min(static_cast<double>(step - warmup_steps) / length, 1.0);
  const double left = kind == "linear" ? 1 - done : (1 + std::cos(std::numbers::pi * done)) / 2;
  return peak * (final_share + (1 - final_share) * left);
}

const std::vector<std::string>& LrSchedule::kinds() {
  static const std::vector<std::string> kKinds = {"constant", "linear", "cosine"};
  return kKinds;
}

}  // namespace gpipe::app
