#pragma once

#include <string>
#include <vector>

#include "app/option_table.h"

namespace gpipe::app {

/// One flag as it was given.
struct FlagValue {
  std::string name;
  std::string text;  ///< `true` or `false` for a switch
};

/// What stands after the command's name.
struct Flags {
  std::vector<FlagValue> values;
  std::string config;  ///< --config FILE; empty for none
  bool print_config = false;
  bool help = false;
};

/// Reads `--name value`, `--name=value`, `--name` and `--no-name` (switches), and the three flags
/// that are not options: --config, --print-config, --help. Of a flag given twice the last counts.
/// Throws UsageError for anything else, naming the nearest flag. Values are not checked yet.
Flags parse_flags(const OptionTable& table, const std::vector<std::string>& arguments);

/// The reference of a command: the table in groups, with what is allowed and the defaults.
std::string to_help(
    const OptionTable& table, const std::string& command, const std::string& summary);

}  // namespace gpipe::app
