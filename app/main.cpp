#include <c10/util/Exception.h>

#include <array>
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

int run_and_report(const std::vector<std::string>& arguments) {
  try {
    return run(arguments);
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
  gpipe::use_metered_allocator();
  return gpipe::app::run_and_report({argv + 1, argv + argc});
}
