#include "app/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace gpipe::app {
namespace {

std::atomic<int> noted_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not lock");

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int kNumSignals = 3;
struct sigaction previous_actions[kNumSignals];

void on_signal(int signal) {
  if (noted_signal.exchange(signal) != 0)
    ::_exit(128 + signal);
  constexpr char kNote[] = "\n[gpipe] stopping after the running step; once more to stop at once\n";
  [[maybe_unused]] auto written = ::write(STDERR_FILENO, kNote, sizeof kNote - 1);
}

}  // namespace

Interrupt::Interrupt() {
  noted_signal = 0;
  struct sigaction action;
  std::memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < kNumSignals; ++i) {
    ::sigaction(kSignals[i], &action, &previous_actions[i]);
    // What is ignored stays so: under nohup a hang-up is not to stop the run.
    if (previous_actions[i].sa_handler == SIG_IGN)
      ::sigaction(kSignals[i], &previous_actions[i], nullptr);
  }
}

Interrupt::~Interrupt() {
  for (int i = 0; i < kNumSignals; ++i)
    ::sigaction(kSignals[i], &previous_actions[i], nullptr);
}

int Interrupt::signal() {
  return noted_signal;
}

}  // namespace gpipe::app
