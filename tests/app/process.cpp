#include "tests/app/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

namespace gpipe::app {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPollInterval(20);

void redirect(const std::string& path, int descriptor) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(file, descriptor);
  ::close(file);
}

std::string unique_path(const char* kind) {
  static std::atomic<int> count = 0;
  return ::testing::TempDir() + "gpipe_program_" + std::to_string(::getpid()) + "_" +
         std::to_string(count++) + "." + kind;
}

}  // namespace

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Process::Process(const std::vector<std::string>& arguments)
    : output_path_(unique_path("out")), error_path_(unique_path("err")) {
  std::vector<char*> argv = {const_cast<char*>(GPIPE_PROGRAM)};
  for (const auto& argument : arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    redirect(output_path_, STDOUT_FILENO);
    redirect(error_path_, STDERR_FILENO);
    ::execv(GPIPE_PROGRAM, argv.data());
    ::_exit(127);
  }
}

Process::~Process() {
  if (!has_ended()) {
    send(SIGKILL);
    ::waitpid(pid_, &status_, 0);
  }
  ::unlink(output_path_.c_str());
  ::unlink(error_path_.c_str());
}

void Process::send(int signal) {
  ::kill(pid_, signal);
}

bool Process::has_ended() {
  ended_ = ended_ || ::waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

bool Process::wait_for_text(const std::string& text, std::chrono::seconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (Clock::now() < deadline) {
    const bool ended = has_ended();
    if ((read_file(output_path_) + read_file(error_path_)).find(text) != std::string::npos)
      return true;
    if (ended)
      return false;
    std::this_thread::sleep_for(kPollInterval);
  }
  return false;
}

ProcessResult Process::wait(std::chrono::seconds timeout) {
  ProcessResult result;
  const auto deadline = Clock::now() + timeout;
  while (!has_ended() && Clock::now() < deadline)
    std::this_thread::sleep_for(kPollInterval);
  if (!ended_) {
    result.timed_out = true;
    send(SIGKILL);
    ::waitpid(pid_, &status_, 0);
    ended_ = true;
  }
  result.exit_code = WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
  result.output = read_file(output_path_);
  result.error = read_file(error_path_);
  return result;
}

ProcessResult run_program(const std::vector<std::string>& arguments, std::chrono::seconds timeout) {
  return Process(arguments).wait(timeout);
}

}  // namespace gpipe::app
