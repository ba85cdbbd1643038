#pragma once

#include <algorithm>
#include <vector>

namespace gpipe::benchmarks {

/// The upper median. `values` must not be empty.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace gpipe::benchmarks
