#include <sstream>

#include "app/flags.h"

namespace gpipe::app {
namespace {

constexpr size_t kTextColumn = 30;
constexpr size_t kLineWidth = 100;

std::string flag_text(const Option& option) {
  if (!option.is_switch())
    return "--" + option.name + " " + option.value_name;
  return "--[no-]" + option.name;
}

std::string default_text(const Option& option) {
  if (option.is_switch())
    return std::get<bool>(option.default_value) ? "on" : "off";
  const auto* text = std::get_if<std::string>(&option.default_value);
  if (text != nullptr)
    return text->empty() ? "none" : *text;
  const std::string number = to_toml(option.default_value);
  return number.substr(0, number.find(".0", number.size() - 2));
}

std::string description(const Option& option) {
  std::string text = option.help;
  std::string choices;
  for (const auto& choice : option.choices)
    choices += (choices.empty() ? "" : ", ") + choice;
  if (!choices.empty())
    text += ": " + choices;
  return text + " [" + default_text(option) + "]";
}

/// Two columns: the flag, and its text wrapped beside it.
void write_entry(std::ostream& out, const std::string& flag, const std::string& text) {
  std::string line = "  " + flag;
  line.resize(std::max(line.size() + 1, kTextColumn), ' ');
  std::istringstream words(text);
  std::string word;
  bool first_of_line = true;
  while (words >> word) {
    if (!first_of_line && line.size() + 1 + word.size() > kLineWidth) {
      out << line << '\n';
      line.assign(kTextColumn, ' ');
      first_of_line = true;
    }
    line += (first_of_line ? "" : " ") + word;
    first_of_line = false;
  }
  out << line << '\n';
}

}  // namespace

std::string to_help(
    const OptionTable& table, const std::string& command, const std::string& summary) {
  std::ostringstream out;
  out << "gpipe " << command << ": " << summary << "\n\nUsage: gpipe " << command
      << " [--config FILE] [flags]\n\n";
  write_entry(
      out, "--config FILE", "a TOML file; its keys are the flags below without --, and flags win");
  write_entry(out, "--print-config", "print what holds, as a file for --config, and stop");
  write_entry(out, "--help, -h", "this text");
  std::string group;
  for (const Option& option : table.options()) {
    if (option.group != group)
      out << '\n' << (group = option.group) << ":\n";
    write_entry(out, flag_text(option), description(option));
  }
  return out.str();
}

}  // namespace gpipe::app
