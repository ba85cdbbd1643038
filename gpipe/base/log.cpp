#include "gpipe/base/log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>

#include "gpipe/base/console.h"
#include "gpipe/base/nearest.h"

namespace gpipe {
namespace {

constexpr std::array<std::string_view, 4> kLevelNames = {"debug", "info", "warning", "error"};

class LogSettings {
 public:
  LogSettings() {
    const char* text = std::getenv("GPIPE_LOG");
    if (!text || !*text)
      return;
    try {
      level = log_level_from_string(text);
    } catch (const Error& error) {
      standard_console().write_line(
          std::string(error.what()) + " (environment variable GPIPE_LOG)");
    }
  }

  std::string prefix() {
    std::lock_guard lock(mutex_);
    return prefix_;
  }

  void set_prefix(std::string prefix) {
    std::lock_guard lock(mutex_);
    prefix_ = std::move(prefix);
  }

  std::atomic<LogLevel> level{LogLevel::Info};

 private:
  std::mutex mutex_;
  std::string prefix_;
};

LogSettings& settings() {
  // Never destroyed, so that destructors of other statics may still log.
  static auto* settings = new LogSettings();
  return *settings;
}

/// `12:34:56.789`, local time.
std::string time_of_day() {
  auto now = std::chrono::system_clock::now();
  std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 16> text{};
  std::size_t length = std::strftime(text.data(), text.size(), "%H:%M:%S", &local);
  std::snprintf(
      text.data() + length, text.size() - length, ".%03d", static_cast<int>(milliseconds));
  return text.data();
}

}  // namespace

std::string_view to_string(LogLevel level) {
  return kLevelNames.at(static_cast<int>(level));
}

LogLevel log_level_from_string(std::string_view text) {
  auto found = std::find(kLevelNames.begin(), kLevelNames.end(), text);
  GPIPE_CHECK(
      found != kLevelNames.end(),
      "[log] unknown level `",
      text,
      "`",
      did_you_mean(text, {kLevelNames.begin(), kLevelNames.end()}),
      "; use debug, info, warning or error");
  return static_cast<LogLevel>(found - kLevelNames.begin());
}

LogLevel log_level() {
  return settings().level.load(std::memory_order_relaxed);
}

void set_log_level(LogLevel level) {
  settings().level.store(level, std::memory_order_relaxed);
}

void set_log_prefix(std::string prefix) {
  settings().set_prefix(std::move(prefix));
}

void write_log(LogLevel level, std::string_view text) {
  if (level < log_level())
    return;
  std::string line = time_of_day() + " " + std::string(to_string(level)) + " ";
  std::string prefix = settings().prefix();
  if (!prefix.empty())
    line += prefix + ": ";
  standard_console().write_line(line.append(text));
}

}  // namespace gpipe
