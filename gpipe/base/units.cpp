#include "gpipe/base/units.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace gpipe {
namespace {

/// `value` to three digits, or to all before the point where there are more.
std::string three_digits(double value) {
  double size = std::abs(value);
  int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

}  // namespace

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  if (std::abs(value) < 1024)
    return std::to_string(bytes) + " B";
  std::size_t unit = 0;
  for (value /= 1024; std::abs(value) >= 1023.5 && unit + 1 < kUnits.size(); ++unit)
    value /= 1024;
  return three_digits(value) + " " + kUnits[unit];
}

std::string format_seconds(double seconds) {
  constexpr std::array kUnits = {"ns", "us", "ms"};
  double value = seconds * 1e9;
  for (const char* unit : kUnits) {
    if (std::abs(value) < 999.5)
      return three_digits(value) + " " + unit;
    value /= 1000;
  }
  return three_digits(value) + " s";
}

}  // namespace gpipe
