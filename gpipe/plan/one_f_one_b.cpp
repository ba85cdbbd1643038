#include <algorithm>

#include "gpipe/base/error.h"
#include "gpipe/plan/schedules.h"

namespace gpipe::plan {

Schedule make_one_f_one_b(int num_stages, int num_micro_batches) {
  GPIPE_CHECK(
      num_stages >= 1 && num_micro_batches >= 1,
      "[schedule] 1f1b with ",
      num_stages,
      " stages and ",
      num_micro_batches,
      " micro-batches; use at least 1 of each");
  Schedule schedule{num_stages, num_micro_batches, {}};
  for (int stage = 0; stage < num_stages; ++stage) {
    auto& actions = schedule.ranks.emplace_back();
    actions.reserve(2 * static_cast<std::size_t>(num_micro_batches));
    int num_warm_up = std::min(num_micro_batches, num_stages - 1 - stage);
    for (int micro_batch = 0; micro_batch < num_warm_up; ++micro_batch)
      actions.push_back({Op::Forward, stage, micro_batch});
    for (int micro_batch = 0; micro_batch < num_micro_batches; ++micro_batch) {
      if (num_warm_up + micro_batch < num_micro_batches)
        actions.push_back({Op::Forward, stage, num_warm_up + micro_batch});
      actions.push_back({Op::Backward, stage, micro_batch});
    }
  }
  return schedule;
}

}  // namespace gpipe::plan
