#pragma once

#include <chrono>
#include <string_view>

#include "gpipe/base/console.h"

namespace gpipe {

/// A line of progress at the bottom of a terminal, rewritten in place and cleared at the end of its
/// life. Does nothing where stderr is not a terminal. One at a time; used by one thread.
///
///   StatusLine status;
///   for (...) status.update("step 12 of 100, loss 2.31");
class StatusLine {
 public:
  /// Updates that follow the last drawn one within `interval` are dropped.
  explicit StatusLine(
      Console& console = standard_console(),
      std::chrono::milliseconds interval = std::chrono::milliseconds(100))
      : console_(console), interval_(interval) {}

  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  ~StatusLine() { clear(); }

  /// Whether anyone sees the line, so that a caller may save the making of its text.
  bool is_visible() const { return console_.is_terminal(); }

  void update(std::string_view text);

  /// Removes the line; the next update shows at once.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  Console& console_;
  std::chrono::milliseconds interval_;
  Clock::time_point next_update_ = Clock::time_point::min();
};

}  // namespace gpipe
