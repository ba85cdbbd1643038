#include "gpipe/plan/action.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "gpipe/base/error.h"

namespace gpipe::plan {
namespace {

struct OpText {
  std::string_view letters;
  std::string_view name;
};

constexpr std::array<OpText, kNumOps> kOpTexts = {{
    {"F", "forward"},
    {"B", "backward"},
    {"I", "backward for inputs"},
    {"W", "backward for weights"},
    {"R", "recompute"},
    {"SEND_F", "send activation"},
    {"RECV_F", "receive activation"},
    {"SEND_B", "send gradient"},
    {"RECV_B", "receive gradient"},
}};

std::optional<int> read_number(std::string_view digits) {
  int number = 0;
  const char* end = digits.data() + digits.size();
  auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (digits.empty() || digits.front() == '-' || stop != end || error != std::errc())
    return std::nullopt;
  return number;
}

std::optional<Op> read_op(std::string_view letters) {
  for (int op = 0; op < kNumOps; ++op) {
    if (kOpTexts[op].letters == letters)
      return static_cast<Op>(op);
  }
  return std::nullopt;
}

}  // namespace

bool is_compute(Op op) {
  return op <= Op::Recompute;
}

std::string_view to_string(Op op) {
  return kOpTexts.at(static_cast<int>(op)).letters;
}

std::string_view name_of(Op op) {
  return kOpTexts.at(static_cast<int>(op)).name;
}

std::string to_string(const Action& action) {
  std::string text = std::to_string(action.stage);
  text += to_string(action.op);
  text += std::to_string(action.micro_batch);
  return text;
}

Action action_from_string(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  std::size_t op_begin = std::min(text.find_first_not_of(kDigits), text.size());
  std::size_t op_end = std::min(text.find_first_of(kDigits, op_begin), text.size());
  auto stage = read_number(text.substr(0, op_begin));
  auto op = read_op(text.substr(op_begin, op_end - op_begin));
  auto micro_batch = read_number(text.substr(op_end));
  GPIPE_CHECK(
      stage && op && micro_batch,
      "[schedule] `",
      text,
      "` is not an action; write stage, op and micro-batch, as in 2F0 (ops: F, B, I, W, R, SEND_F, "
      "RECV_F, SEND_B, RECV_B)");
  return {*op, *stage, *micro_batch};
}

}  // namespace gpipe::plan
