#pragma once

namespace gpipe::app {

/// While it lives, the first SIGINT, SIGTERM or SIGHUP is only noted, for the run to stop after the running
/// step; the second ends the process at once with 128 + its number. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// The signal that came; 0 where none did. From any thread.
  static int signal();
  static bool requested() { return signal() != 0; }
};

}  // namespace gpipe::app
