#include <algorithm>

#include "gpipe/base/error.h"
#include "gpipe/plan/schedule.h"

namespace gpipe::plan {
namespace {

/// Takes the text up to the next `separator` off the front of `rest`.
std::string_view take_until(std::string_view& rest, char separator) {
  std::size_t end = std::min(rest.find(separator), rest.size());
  std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return taken;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos)
    return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

Action read_field(std::string_view field, std::size_t line, std::size_t column) {
  try {
    Action action = action_from_string(field);
    GPIPE_CHECK(
        is_compute(action.op),
        "[schedule] `",
        field,
        "` is not a compute action; leave sends and receives to lowering");
    return action;
  } catch (const Error& error) {
    throw Error(detail::concatenate(error.what(), " (line ", line, ", column ", column, ")"));
  }
}

std::vector<Action> read_line(std::string_view text, std::size_t line) {
  std::vector<Action> actions;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view field = trim(take_until(rest, ','));
    if (field.empty())
      continue;
    std::size_t column = static_cast<std::size_t>(field.data() - text.data()) + 1;
    actions.push_back(read_field(field, line, column));
  }
  return actions;
}

}  // namespace

std::string to_csv(const Schedule& schedule) {
  std::string csv;
  for (const auto& actions : schedule.ranks) {
    for (std::size_t position = 0; position < actions.size(); ++position) {
      if (position > 0)
        csv += ',';
      csv += to_string(actions[position]);
    }
    csv += '\n';
  }
  return csv;
}

Schedule schedule_from_csv(std::string_view csv) {
  Schedule schedule;
  for (std::string_view rest = csv; !rest.empty();)
    schedule.ranks.push_back(read_line(take_until(rest, '\n'), schedule.ranks.size() + 1));
  while (!schedule.ranks.empty() && schedule.ranks.back().empty())
    schedule.ranks.pop_back();
  GPIPE_CHECK(
      !schedule.ranks.empty(), "[schedule] the text holds no action; write one line a rank");
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      schedule.num_stages = std::max(schedule.num_stages, action.stage + 1);
      schedule.num_micro_batches = std::max(schedule.num_micro_batches, action.micro_batch + 1);
    }
  }
  return schedule;
}

}  // namespace gpipe::plan
