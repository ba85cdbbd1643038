#pragma once

#include <string>
#include <string_view>

#include "gpipe/base/error.h"

namespace gpipe {

enum class LogLevel { Debug, Info, Warning, Error };

/// `debug`, `info`, `warning`, `error`.
std::string_view to_string(LogLevel level);
/// Inverse of to_string. Throws Error on any other text, naming the nearest.
LogLevel log_level_from_string(std::string_view text);

/// Records below this level are dropped. At the start it is that of the environment variable
/// GPIPE_LOG, or `info` where there is none or it names no level, which is then reported.
LogLevel log_level();
void set_log_level(LogLevel level);

/// Stands before the text of each record, as in `rank 3`. Empty at the start.
void set_log_prefix(std::string prefix);

/// Writes one record, one line on stderr, if the level is high enough. Line ends within the text
/// become ` | `. May be called from any thread, like everything here.
///
///   12:34:56.789 warning rank 3: checkpoint took 12.3 s
void write_log(LogLevel level, std::string_view text);

/// A record of the parts, streamed one after the other: `log_info("step ", step, " of ", total)`.
/// They are put together only if the level is high enough.
template <class... Parts>
void log_at(LogLevel level, const Parts&... parts) {
  if (level >= log_level())
    write_log(level, detail::concatenate(parts...));
}

template <class... Parts>
void log_debug(const Parts&... parts) {
  log_at(LogLevel::Debug, parts...);
}

template <class... Parts>
void log_info(const Parts&... parts) {
  log_at(LogLevel::Info, parts...);
}

template <class... Parts>
void log_warning(const Parts&... parts) {
  log_at(LogLevel::Warning, parts...);
}

template <class... Parts>
void log_error(const Parts&... parts) {
  log_at(LogLevel::Error, parts...);
}

}  // namespace gpipe
