#pragma once

#include <string>
#include <vector>

#include "gpipe/plan/action.h"

namespace gpipe::plan {

/// One action's interval on a rank, in seconds since the start of the step.
struct Span {
  Action action;
  double start_seconds = 0;
  double end_seconds = 0;
};

/// What ran when: the output of the simulator and of the executor alike.
struct Timeline {
  /// Spans of each rank, in the order they ran.
  std::vector<std::vector<Span>> ranks;

  /// End of the last span of all ranks; 0 where there is none.
  double duration_seconds() const;

  /// Sum of the compute spans (F, B, I, W, R) of a rank; waiting in a receive does not count.
  double busy_seconds(int rank) const;

  /// Idle share of the step: 1 - sum(busy) / (R * duration). 0 for an empty timeline.
  double bubble_ratio() const;
};

/// A picture for the terminal: one line a rank, one column per `duration / width`. Each compute
/// span shows its letter and micro-batch (on a rank of several stages the stage as well), as far as
/// they fit whole, then `-` to its end; `.` where the rank idles. A last line tells step time and
/// bubble.
///
///   rank 0  F0F1F2......B2B1B0
///   rank 1  ..F0F1F2..B2B1B0..
///
/// Throws Error where `width` is below 1.
std::string to_text(const Timeline& timeline, int width = 100);

/// Chrome Trace Event JSON, which ui.perfetto.dev opens: one thread a rank, one event a span, in
/// microseconds.
std::string to_chrome_trace(const Timeline& timeline);

}  // namespace gpipe::plan
