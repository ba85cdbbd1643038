#include "app/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>

#include "app/command.h"
#include "gpipe/base/nearest.h"

namespace gpipe::app {
namespace {

/// Where CLI11 puts what it reads: one entry an option. A deque, for CLI11 keeps the addresses.
struct Entry {
  std::string text;
  CLI::Option* flag = nullptr;
};

void declare(CLI::App& app, const Option& option, Entry& entry) {
  const std::string flag = "--" + option.name;
  if (option.is_switch()) {
    entry.flag = app.add_flag(flag + ",!--no-" + option.name, entry.text);
  } else {
    entry.flag = app.add_option(flag, entry.text);
  }
  entry.flag->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

[[noreturn]] void refuse_extra(const OptionTable& table, const std::string& extra) {
  if (extra.rfind("-", 0) != 0)
    throw UsageError(
        "[flags] unexpected argument `" + extra + "`; a configuration file is given by --config");
  auto names = table.names();
  names.insert(names.end(), {"config", "print-config", "help"});
  for (auto& name : names)
    name = "--" + name;
  const std::string flag = extra.substr(0, extra.find('='));
  throw UsageError("[flags] unknown flag `" + flag + "`" + did_you_mean(flag, names));
}

/// CLI11 takes whatever follows for the value; no value of ours starts like a flag.
void check_value(const std::string& name, const std::string& text) {
  if (text.rfind("--", 0) == 0)
    throw UsageError("[flags] `--" + name + "` needs a value");
}

void parse(CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();
    throw UsageError("[flags] `" + text.substr(0, text.find(':')) + "` needs a value");
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string("[flags] ") + error.what());
  }
}

}  // namespace

Flags parse_flags(const OptionTable& table, const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  Flags flags;
  app.add_option("--config", flags.config);
  app.add_flag("--print-config", flags.print_config);
  app.add_flag("--help,-h", flags.help);
  std::deque<Entry> entries(table.options().size());
  for (size_t i = 0; i < entries.size(); ++i)
    declare(app, table.options()[i], entries[i]);
  parse(app, arguments);
  check_value("config", flags.config);
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string& name = table.options()[i].name;
    check_value(name, entries[i].text);
    if (entries[i].flag->count() > 0)
      flags.values.push_back({name, entries[i].text});
  }
  if (!app.remaining().empty())
    refuse_extra(table, app.remaining().front());
  return flags;
}

}  // namespace gpipe::app
