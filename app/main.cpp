#include <c10/util/Exception.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "app/command.h"
#include "gpipe/base/nearest.h"
#include "gpipe/core/allocator.h"

namespace gpipe::app {
namespace {

constexpr std::array kCommands = {
    Command{"train", "trains a network in pipeline-parallel stages", run_train},
    Command{"eval", "tests trained weights on the held-out rows", run_eval},
};

void print_usage(std::ostream& out) {
  out << "gpipe: pipeline-parallel training of neural networks\n\nUsage: gpipe COMMAND [flags]\n\n";
  for (const Command& command : kCommands)
    out << "  " << command.name << std::string(12 - command.name.size(), ' ') << command.summary
        << '\n';
  out << "\n`gpipe COMMAND --help` has the flags of a command.\n";
}

[[noreturn]] void refuse(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : kCommands)
    names.emplace_back(command.name);
  throw UsageError(
      "[gpipe] unknown command `" + name + "`" + did_you_mean(name, names) +
      "; gpipe --help lists them");
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    print_usage(std::cerr);
    return kExitUsageError;
  }
  if (arguments.front() == "--help" || arguments.front() == "-h") {
    print_usage(std::cout);
    return kExitSuccess;
  }
  for (const Command& command : kCommands)
    if (command.name == arguments.front())
      return command.run(command, {arguments.begin() + 1, arguments.end()});
  refuse(arguments.front());
}

/// Descriptors 0 to 2 are there, so that no file of ours is given one of them, and a reader who has gone away does not end
/// the run: what was learned is still to be saved.
void prepare_streams() {
  while (true) {
    const int descriptor = ::open("/dev/null", O_RDWR);
    if (descriptor < 0 || descriptor > 2) {
      if (descriptor > 2)
        ::close(descriptor);
      break;
    }
  }
  std::signal(SIGPIPE, SIG_IGN);
}

/// What was printed must have arrived.
int check_output(int code) {
  std::cout.flush();
  if (std::cout || code != kExitSuccess)
    return code;
  std::cerr << "gpipe: standard output cannot be written; is the disk full, or its reader gone?"
            << std::endl;
  return kExitRunError;
}

int run_and_report(const std::vector<std::string>& arguments) {
  try {
    return check_output(run(arguments));
  } catch (const UsageError& error) {
    std::cerr << "gpipe: " << error.what() << std::endl;
    return kExitUsageError;
  } catch (const c10::Error& error) {
    std::cerr << "gpipe: [libtorch] " << error.what_without_backtrace() << std::endl;
    return kExitRunError;
  } catch (const std::exception& error) {
    std::cerr << "gpipe: " << error.what() << std::endl;
    return kExitRunError;
  }
}

}  // namespace
}  // namespace gpipe::app

int main(int argc, char** argv) {
  gpipe::app::prepare_streams();
  gpipe::use_metered_allocator();
  return gpipe::app::run_and_report({argv + 1, argv + argc});
}
