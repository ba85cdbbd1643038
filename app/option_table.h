#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gpipe::app {

/// A value of an option: yes or no, a whole number, a number, or text.
using OptionValue = std::variant<bool, int64_t, double, std::string>;

/// The value as TOML has it: `true`, `32`, `0.5`, `"adam"`.
std::string to_toml(const OptionValue& value);

/// One option: the key of the configuration file, and the flag `--name`.
struct Option {
  std::string name;
  std::string group;
  std::string help;
  std::string value_name;  ///< what the reference shows after the flag: `N`, `FILE`, ...
  OptionValue default_value;
  /// The field that holds the value; its type is the option's.
  std::variant<bool*, int64_t*, double*, std::string*> target;
  /// Allowed texts; empty for any.
  std::vector<std::string> choices;
  double at_least = -std::numeric_limits<double>::infinity();
  double at_most = std::numeric_limits<double>::infinity();
  /// Further conditions on a text: returns what it must be, or nothing where it is.
  std::function<std::string(const std::string&)> check;

  bool is_switch() const { return std::holds_alternative<bool>(default_value); }
  OptionValue value() const;

  /// `true or false`, `a whole number`, `a number` or `text`.
  std::string_view type_name() const;

  /// Checks and stores. The UsageError of a wrong value is `<subject> is 3; it must be ...`, where
  /// the subject says what was set and where. A whole number is taken for a number; nothing else is
  /// converted.
  void set(const OptionValue& value, std::string_view subject);
  /// The same from the text of a flag.
  void set_from_text(const std::string& text, std::string_view subject);

  // How a table is written: table.add(...).range(0, 1).
  Option& named(std::string name);
  Option& one_of(std::vector<std::string> texts);
  Option& range(double low, double high = std::numeric_limits<double>::infinity());
  Option& checked(std::function<std::string(const std::string&)> function);
};

/// The options of a command: the one list that the flags, the configuration file, --help and
/// --print-config are made from. It writes to the fields it was made with, which must outlive it.
class OptionTable {
 public:
  /// Options added from here on belong to this group.
  void group(std::string name) { group_ = std::move(name); }

  /// An option with its field, whose present value is the default.
  Option& add(std::string name, bool* field, std::string help);
  Option& add(std::string name, int64_t* field, std::string help);
  Option& add(std::string name, double* field, std::string help);
  Option& add(std::string name, std::string* field, std::string help);

  std::vector<Option>& options() { return options_; }
  const std::vector<Option>& options() const { return options_; }

  /// Null where there is none.
  Option* find(std::string_view name);

  std::vector<std::string> names() const;

 private:
  template <class T>
  Option& add_any(std::string name, T* field, std::string help, std::string value_name);

  std::string group_;
  std::vector<Option> options_;
};

}  // namespace gpipe::app
