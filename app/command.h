#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpipe/base/error.h"

namespace gpipe::app {

/// What the program returns. A run that a signal ended returns 128 + its number.
inline constexpr int kExitSuccess = 0;
inline constexpr int kExitRunError = 1;  ///< the run failed: data, files, a stage, the loss
inline constexpr int kExitUsageError =
    2;  ///< the options are wrong, whatever the state of the disk

/// An error in what the user asked for: in a flag, or in the configuration file.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// A command of the program: `gpipe name arguments...`.
struct Command {
  std::string_view name;
  std::string_view summary;  ///< one line of `gpipe --help`
  /// Returns the exit code. Throws UsageError for wrong options and anything else for a failed run;
  /// main() prints both.
  int (*run)(const Command& command, const std::vector<std::string>& arguments);
};

int run_train(const Command& command, const std::vector<std::string>& arguments);
int run_eval(const Command& command, const std::vector<std::string>& arguments);

}  // namespace gpipe::app
