#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpipe/plan/schedule.h"

namespace gpipe::plan {

/// Fill-drain, the paper's schedule (Fig. 2c), one stage a rank: all forwards, first micro-batch
/// first, then all backwards, last micro-batch first. Every stage holds all M micro-batches at its
/// peak.
///
///   rank 0  F0 F1 F2 .  .  B2 B1 B0
///   rank 1     F0 F1 F2 B2 B1 B0
///
/// This and all generators throw Error where either number is below 1.
Schedule make_fill_drain(int num_stages, int num_micro_batches);

/// 1F1B, one stage a rank: stage s runs min(M, K - 1 - s) forwards to warm up, then a forward and a
/// backward in turn, then the backwards that are left; backwards first micro-batch first. It takes
/// as long as fill-drain on equal stages, but stage s holds only min(M, K - s) micro-batches at its
/// peak.
///
///   rank 0  F0 F1 .  B0 F2 B1 .  B2
///   rank 1     F0 B0 F1 B1 F2 B2
Schedule make_one_f_one_b(int num_stages, int num_micro_batches);

/// The names that make_schedule() knows: `gpipe` (fill-drain), `1f1b`.
std::vector<std::string> schedule_names();

/// The schedule of that name. Throws Error for another name, naming the nearest.
Schedule make_schedule(std::string_view name, int num_stages, int num_micro_batches);

}  // namespace gpipe::plan
