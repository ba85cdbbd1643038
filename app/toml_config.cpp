#include "app/toml_config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "app/command.h"
#include "gpipe/base/nearest.h"

namespace gpipe::app {
namespace {

std::string place(const std::string& path, uint32_t line) {
  return path + ":" + std::to_string(line);
}

[[noreturn]] void refuse(const std::string& where, const std::string& problem) {
  throw UsageError("[config] " + where + ": " + problem);
}

/// `[5, 4, 4]` as `5,4,4`, the way flags write it.
std::string join_list(const toml::array& list, const std::string& name, const std::string& where) {
  std::string text;
  for (const auto& node : list) {
    if (!node.is_integer())
      refuse(where, "`" + name + "` holds something that is not a whole number");
    text += (text.empty() ? "" : ",") + std::to_string(node.as_integer()->get());
  }
  return text;
}

OptionValue to_value(const toml::node& node, const std::string& name, const std::string& where) {
  if (const auto* yes = node.as_boolean())
    return yes->get();
  if (const auto* whole = node.as_integer())
    return whole->get();
  if (const auto* number = node.as_floating_point())
    return number->get();
  if (const auto* text = node.as_string())
    return text->get();
  if (const auto* list = node.as_array())
    return join_list(*list, name, where);
  if (node.is_table())
    refuse(where, "[" + name + "] is a section; options are plain keys, without sections");
  refuse(where, "`" + name + "` is a date or time; no option takes one");
}

struct Entry {
  std::string name;
  uint32_t line;
  const toml::node* node;
};

/// toml++ sorts keys by name; errors are to be reported from the top.
std::vector<Entry> in_file_order(const toml::table& file) {
  std::vector<Entry> entries;
  for (const auto& [key, node] : file)
    entries.push_back({std::string(key.str()), key.source().begin.line, &node});
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.line < b.line;
  });
  return entries;
}

}  // namespace

void read_toml_text(const std::string& text, const std::string& path, OptionTable& table) {
  toml::table file;
  try {
    file = toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    refuse(place(path, error.source().begin.line), std::string(error.description()));
  }
  for (const auto& [name, line, node] : in_file_order(file)) {
    const std::string where = place(path, line);
    Option* option = table.find(name);
    if (option == nullptr && !node->is_table())
      refuse(where, "unknown key `" + name + "`" + did_you_mean(name, table.names()));
    const OptionValue value = to_value(*node, name, where);
    if (option != nullptr)
      option->set(value, "[config] " + where + ": `" + name + "`");
  }
}

void read_toml(const std::string& path, OptionTable& table) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    refuse(path, "is not a file");
  errno = 0;
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();  // fails for an empty file as well, but then without an errno
  if (!text && errno != 0)
    refuse(path, std::string("cannot be read: ") + std::strerror(errno));
  read_toml_text(text.str(), path, table);
}

std::string to_toml(const OptionTable& table) {
  std::string text;
  std::string group;
  for (const Option& option : table.options()) {
    if (option.group != group) {
      text += (text.empty() ? "# " : "\n# ") + option.group + "\n";
      group = option.group;
    }
    text += option.name + " = " + to_toml(option.value()) + "\n";
  }
  return text;
}

}  // namespace gpipe::app
