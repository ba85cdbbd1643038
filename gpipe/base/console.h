#pragma once

#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace gpipe {

/// Where log records and the status line meet: whole lines on a stream, with at most one line below
/// them that is rewritten in place. All members may be called from any thread; each writes with one
/// call, so that lines of several processes do not mix either.
class Console {
 public:
  /// `stream` must outlive the console. Where `is_terminal` is false there is no status line.
  Console(std::FILE* stream, bool is_terminal) : stream_(stream), is_terminal_(is_terminal) {}

  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool is_terminal() const { return is_terminal_; }

  /// Writes `line` and a line end, above the status line.
  void write_line(std::string_view line);

  /// Shows `text` as the status line, cut to the terminal's width. An empty text clears it.
  void set_status(std::string_view text);

 private:
  std::string drawn_status() const;
  void write(const std::string& text);

  std::mutex mutex_;
  std::FILE* stream_;
  bool is_terminal_;
  std::string status_;
};

/// The console on stderr.
Console& standard_console();

}  // namespace gpipe
