#include "app/option_table.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "app/command.h"
#include "gpipe/base/nearest.h"

namespace gpipe::app {
namespace {

[[noreturn]] void refuse(
    std::string_view subject, const std::string& value, const std::string& rule) {
  throw UsageError(detail::concatenate(subject, " is ", value, "; it must be ", rule));
}

std::string quoted(const std::string& text) {
  return "`" + text + "`";
}

std::string joined(const std::vector<std::string>& texts) {
  std::string line;
  for (const auto& text : texts)
    line += (line.empty() ? "" : ", ") + text;
  return line;
}

template <class T>
bool parse(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end && !text.empty();
}

bool parse(const std::string& text, bool& value) {
  value = text == "true";
  return value || text == "false";
}

bool parse(const std::string& text, std::string& value) {
  value = text;
  return true;
}

std::string shortest(double value) {
  char digits[40];
  auto result = std::to_chars(digits, digits + sizeof digits, value);
  return std::string(digits, result.ptr);
}

std::string range_text(const Option& option) {
  if (std::isinf(option.at_most))
    return "at least " + shortest(option.at_least);
  return "from " + shortest(option.at_least) + " to " + shortest(option.at_most);
}

void check_number(const Option& option, double number, std::string_view subject) {
  // Written so that a NaN is refused as well.
  if (!(number >= option.at_least && number <= option.at_most && std::isfinite(number)))
    refuse(subject, shortest(number), range_text(option));
}

void check_text(const Option& option, const std::string& text, std::string_view subject) {
  bool known = option.choices.empty();
  for (const auto& choice : option.choices)
    known = known || choice == text;
  if (!known)
    refuse(
        subject,
        quoted(text),
        "one of " + joined(option.choices) + did_you_mean(text, option.choices));
  const std::string rule = option.check ? option.check(text) : "";
  if (!rule.empty())
    refuse(subject, quoted(text), rule);
}

void check_value(const Option& option, const OptionValue& value, std::string_view subject) {
  if (const auto* whole = std::get_if<int64_t>(&value))
    check_number(option, static_cast<double>(*whole), subject);
  if (const auto* number = std::get_if<double>(&value))
    check_number(option, *number, subject);
  if (const auto* text = std::get_if<std::string>(&value))
    check_text(option, *text, subject);
}

std::string escaped(const std::string& text) {
  std::string toml = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      (toml += '\\') += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      const char* hex = "0123456789ABCDEF";
      ((toml += "\\u00") += hex[(c >> 4) & 7]) += hex[c & 15];
    } else {
      toml += c;
    }
  }
  return toml + '"';
}

}  // namespace

std::string to_toml(const OptionValue& value) {
  if (const auto* yes = std::get_if<bool>(&value))
    return *yes ? "true" : "false";
  if (const auto* number = std::get_if<int64_t>(&value))
    return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&value))
    return escaped(*text);
  std::string digits = shortest(std::get<double>(value));
  if (digits.find_first_of(".en") == std::string::npos)
    digits += ".0";
  return digits;
}

OptionValue Option::value() const {
  return std::visit([](const auto* field) -> OptionValue { return *field; }, target);
}

std::string_view Option::type_name() const {
  constexpr std::string_view kNames[] = {"true or false", "a whole number", "a number", "text"};
  return kNames[default_value.index()];
}

void Option::set(const OptionValue& value, std::string_view subject) {
  OptionValue converted = value;
  const auto* whole = std::get_if<int64_t>(&value);
  if (whole != nullptr && std::holds_alternative<double>(default_value))
    converted = static_cast<double>(*whole);
  if (converted.index() != default_value.index())
    refuse(subject, to_toml(value), std::string(type_name()));
  check_value(*this, converted, subject);
  std::visit(
      [&](auto* field) { *field = std::get<std::decay_t<decltype(*field)>>(converted); }, target);
}

void Option::set_from_text(const std::string& text, std::string_view subject) {
  std::visit(
      [&](auto* field) {
        std::decay_t<decltype(*field)> value{};
        if (!parse(text, value))
          refuse(subject, quoted(text), std::string(type_name()));
        set(value, subject);
      },
      target);
}

Option& Option::named(std::string text) {
  value_name = std::move(text);
  return *this;
}

Option& Option::one_of(std::vector<std::string> texts) {
  choices = std::move(texts);
  value_name = "NAME";
  return *this;
}

Option& Option::range(double low, double high) {
  at_least = low;
  at_most = high;
  return *this;
}

Option& Option::checked(std::function<std::string(const std::string&)> function) {
  check = std::move(function);
  return *this;
}

template <class T>
Option& OptionTable::add_any(std::string name, T* field, std::string help, std::string value_name) {
  Option option;
  option.name = std::move(name);
  option.group = group_;
  option.help = std::move(help);
  option.value_name = std::move(value_name);
  option.default_value = *field;
  option.target = field;
  options_.push_back(std::move(option));
  return options_.back();
}

Option& OptionTable::add(std::string name, bool* field, std::string help) {
  return add_any(std::move(name), field, std::move(help), "");
}

Option& OptionTable::add(std::string name, int64_t* field, std::string help) {
  return add_any(std::move(name), field, std::move(help), "N").range(0);
}

Option& OptionTable::add(std::string name, double* field, std::string help) {
  return add_any(std::move(name), field, std::move(help), "X").range(0);
}

Option& OptionTable::add(std::string name, std::string* field, std::string help) {
  return add_any(std::move(name), field, std::move(help), "TEXT");
}

Option* OptionTable::find(std::string_view name) {
  for (auto& option : options_)
    if (option.name == name)
      return &option;
  return nullptr;
}

std::vector<std::string> OptionTable::names() const {
  std::vector<std::string> names;
  for (const auto& option : options_)
    names.push_back(option.name);
  return names;
}

}  // namespace gpipe::app
