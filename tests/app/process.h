#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace gpipe::app {

/// How a child process ended, and what it wrote.
struct ProcessResult {
  int exit_code = -1;  ///< 128 + signal where a signal killed it
  bool timed_out = false;
  std::string output;  ///< stdout
  std::string error;   ///< stderr
};

/// The built gpipe program as a child process, with its output in files. Killed at the end of its
/// life, so that no test leaves one behind.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal);
  /// Waits until stdout and stderr together hold `text`. False after the time-out, or where the
  /// process ended without it.
  bool wait_for_text(const std::string& text, std::chrono::seconds timeout);
  /// Waits for the end; kills the process after the time-out.
  ProcessResult wait(std::chrono::seconds timeout);

 private:
  bool has_ended();

  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
  std::string output_path_;
  std::string error_path_;
};

/// Runs the program to its end.
ProcessResult run_program(
    const std::vector<std::string>& arguments,
    std::chrono::seconds timeout = std::chrono::seconds(100));

std::string read_file(const std::string& path);

}  // namespace gpipe::app
