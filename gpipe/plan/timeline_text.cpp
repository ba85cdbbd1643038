#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "gpipe/base/error.h"
#include "gpipe/base/units.h"
#include "gpipe/plan/timeline.h"

namespace gpipe::plan {
namespace {

constexpr char kIdle = '.';
constexpr char kGoingOn = '-';

bool has_several_stages(const std::vector<Span>& spans) {
  return std::any_of(spans.begin(), spans.end(), [&](const Span& span) {
    return span.action.stage != spans.front().action.stage;
  });
}

/// The longest text that tells no lie in `width` columns: `2F10`, `F10`, or `F`.
std::string label(const Action& action, bool with_stage, std::size_t width) {
  std::string letter(to_string(action.op));
  std::string text = letter + std::to_string(action.micro_batch);
  if (with_stage)
    text = std::to_string(action.stage) + text;
  return text.size() <= width ? text : letter;
}

std::string draw_rank(const std::vector<Span>& spans, double columns_per_second, int width) {
  std::string line(width, kIdle);
  bool with_stage = has_several_stages(spans);
  auto column_of = [&](double seconds) {
    return static_cast<std::size_t>(
        std::clamp<double>(std::round(seconds * columns_per_second), 0, width));
  };
  for (const Span& span : spans) {
    std::size_t begin = column_of(span.start_seconds);
    std::size_t end = column_of(span.end_seconds);
    if (!is_compute(span.action.op) || begin >= end)
      continue;
    std::string text = label(span.action, with_stage, end - begin);
    text.resize(end - begin, kGoingOn);
    line.replace(begin, text.size(), text);
  }
  return line;
}

std::string summary(const Timeline& timeline) {
  std::array<char, 32> bubble{};
  std::snprintf(bubble.data(), bubble.size(), "%.1f", 100 * timeline.bubble_ratio());
  return "step " + format_seconds(timeline.duration_seconds()) + ", bubble " + bubble.data() +
         " %\n";
}

}  // namespace

std::string to_text(const Timeline& timeline, int width) {
  GPIPE_CHECK(width >= 1, "[timeline] a width of ", width, " columns; use at least 1");
  double duration = timeline.duration_seconds();
  double columns_per_second = duration > 0 ? width / duration : 0;
  std::size_t number_width =
      std::to_string(std::max<std::size_t>(timeline.ranks.size(), 1) - 1).size();
  std::string text;
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    std::string number = std::to_string(rank);
    text += "rank " + std::string(number_width - number.size(), ' ') + number + "  ";
    text += draw_rank(timeline.ranks[rank], columns_per_second, width) + "\n";
  }
  return text + summary(timeline);
}

}  // namespace gpipe::plan
