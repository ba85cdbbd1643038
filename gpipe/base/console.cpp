#include "gpipe/base/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace gpipe {
namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";
constexpr std::size_t kDefaultColumns = 80;

std::size_t columns_of(std::FILE* stream) {
  winsize size{};
  bool is_known = ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kDefaultColumns;
}

/// The record's own line ends would look like records.
std::string in_one_line(std::string_view text) {
  std::string line;
  for (char letter : text) {
    if (letter == '\n')
      line += " | ";
    else
      line += letter;
  }
  return line;
}

/// The first `columns` characters of UTF-8 text, none of them in part.
std::string_view cut(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    bool is_first_byte = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (is_first_byte && columns-- == 0)
      break;
  }
  return text.substr(0, end);
}

}  // namespace

std::string Console::drawn_status() const {
  // The last column stays free: a cursor behind it may wrap.
  return std::string(cut(status_, columns_of(stream_) - 1));
}

void Console::write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stream_);
  std::fflush(stream_);
}

void Console::write_line(std::string_view line) {
  std::lock_guard lock(mutex_);
  std::string text = in_one_line(line) + "\n";
  if (!status_.empty())
    text = std::string(kEraseLine) + text + drawn_status();
  write(text);
}

void Console::set_status(std::string_view text) {
  if (!is_terminal_)
    return;
  std::lock_guard lock(mutex_);
  if (status_ == text)
    return;
  status_ = in_one_line(text);
  write(std::string(kEraseLine) + drawn_status());
}

Console& standard_console() {
  // Never destroyed, so that destructors of other statics may still log.
  static auto* console = new Console(stderr, ::isatty(STDERR_FILENO) == 1);
  return *console;
}

}  // namespace gpipe
