#include "gpipe/models/option_fields.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "gpipe/base/error.h"
#include "gpipe/base/nearest.h"

namespace gpipe::models {

namespace {

template <class Number>
bool read_number(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end;
}

std::string to_text(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

}  // namespace

void OptionFields::add(const std::string& key, int64_t& field, const std::string& meaning) {
  const std::string* text = declare(key, std::to_string(field), meaning);
  GPIPE_CHECK(
      text == nullptr || read_number(*text, field),
      "[models] ",
      model_,
      ": ",
      key,
      " = '",
      *text,
      "' is not a whole number; write one such as ",
      field);
}

void OptionFields::add(const std::string& key, double& field, const std::string& meaning) {
  const std::string* text = declare(key, to_text(field), meaning);
  GPIPE_CHECK(
      text == nullptr || read_number(*text, field),
      "[models] ",
      model_,
      ": ",
      key,
      " = '",
      *text,
      "' is not a number; write one such as 0.1");
}

void OptionFields::add(const std::string& key, bool& field, const std::string& meaning) {
  const std::string* text = declare(key, field ? "true" : "false", meaning);
  if (text == nullptr)
    return;
  GPIPE_CHECK(
      *text == "true" || *text == "false",
      "[models] ",
      model_,
      ": ",
      key,
      " = '",
      *text,
      "' is neither true nor false; write one of them");
  field = *text == "true";
}

void OptionFields::check_all_known() const {
  std::vector<std::string> known;
  std::string all;
  for (const ModelKey& key : keys_) {
    known.push_back(key.name);
    all += (all.empty() ? "" : ", ") + key.name;
  }
  for (const auto& [key, value] : given_) {
    GPIPE_CHECK(
        std::find(known.begin(), known.end(), key) != known.end(),
        "[models] ",
        model_,
        " has no option '",
        key,
        "'",
        did_you_mean(key, known),
        "; its options are ",
        all);
  }
}

const std::string* OptionFields::declare(
    const std::string& key, std::string default_value, const std::string& meaning) {
  keys_.push_back({key, std::move(default_value), meaning});
  const auto given = given_.find(key);
  return given == given_.end() ? nullptr : &given->second;
}

}  // namespace gpipe::models
