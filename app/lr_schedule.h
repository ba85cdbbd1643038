#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpipe::app {

/// The learning rate of each step: up from zero in a line over the warm-up, then by `kind`.
struct LrSchedule {
  std::string kind = "constant";  ///< `constant`, `linear` or `cosine`
  double peak = 1e-3;
  /// Share of the peak that `linear` and `cosine` end with.
  double final_share = 0;
  int64_t warmup_steps = 0;
  int64_t total_steps = 1;

  /// Of the step with this number, from 0. Step `warmup_steps` is the first with the peak; the
  /// last step, total_steps - 1, has final_share * peak under `linear` and `cosine`. Beyond that
  /// it stays.
  double at(int64_t step) const;

  static const std::vector<std::string>& kinds();
};

}  // namespace gpipe::app
