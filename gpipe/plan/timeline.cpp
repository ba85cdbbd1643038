#include "gpipe/plan/timeline.h"

#include <algorithm>

namespace gpipe::plan {

double Timeline::duration_seconds() const {
  double duration = 0;
  for (const auto& spans : ranks) {
    for (const Span& span : spans)
      duration = std::max(duration, span.end_seconds);
  }
  return duration;
}

double Timeline::busy_seconds(int rank) const {
  double busy = 0;
  for (const Span& span : ranks.at(rank)) {
    if (is_compute(span.action.op))
      busy += span.end_seconds - span.start_seconds;
  }
  return busy;
}

double Timeline::bubble_ratio() const {
  double available = duration_seconds() * static_cast<double>(ranks.size());
  if (available <= 0)
    return 0;
  double busy = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    busy += busy_seconds(static_cast<int>(rank));
  return 1 - busy / available;
}

}  // namespace gpipe::plan
