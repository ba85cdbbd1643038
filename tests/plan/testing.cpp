#include "tests/plan/testing.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "gpipe/plan/action_index.h"

namespace gpipe::plan {
namespace {

int draw(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

/// All compute actions of a schedule, in no order, on a random rank for each stage.
Schedule unordered_schedule(std::mt19937& random) {
  Schedule schedule{draw(random, 1, 6), draw(random, 1, 5), {}};
  schedule.ranks.resize(draw(random, 1, 4));
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    auto& actions = schedule.ranks[draw(random, 0, schedule.num_ranks() - 1)];
    bool is_split = draw(random, 0, 1) == 1;
    for (int micro_batch = 0; micro_batch < schedule.num_micro_batches; ++micro_batch) {
      actions.push_back({Op::Forward, stage, micro_batch});
      actions.push_back({is_split ? Op::BackwardInput : Op::Backward, stage, micro_batch});
      if (is_split)
        actions.push_back({Op::BackwardWeight, stage, micro_batch});
      if (draw(random, 0, 3) == 0)
        actions.push_back({Op::Recompute, stage, micro_batch});
    }
  }
  return schedule;
}

}  // namespace

std::string golden(const std::string& name) {
  std::ifstream file(std::string(GPIPE_GOLDEN_DIR) + "/" + name);
  EXPECT_TRUE(file) << "cannot open " << name << " in " << GPIPE_GOLDEN_DIR;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string to_line(const std::vector<Action>& actions) {
  std::string line;
  for (const Action& action : actions)
    line += (line.empty() ? "" : " ") + to_string(action);
  return line;
}

std::string to_lines(const std::vector<Program>& programs) {
  std::string lines;
  for (const Program& program : programs)
    lines += to_line(program) + "\n";
  return lines;
}

std::vector<Program> programs_from(std::string_view lines) {
  std::vector<Program> programs;
  std::istringstream stream{std::string(lines)};
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    programs.emplace_back();
    for (std::string word; words >> word;)
      programs.back().push_back(action_from_string(word));
  }
  return programs;
}

Schedule random_schedule(std::mt19937& random) {
  Schedule schedule = unordered_schedule(random);
  std::vector<Action> left;
  for (const auto& actions : schedule.ranks)
    left.insert(left.end(), actions.begin(), actions.end());
  ActionIndex index(schedule.num_stages, schedule.num_micro_batches, schedule.ranks);
  for (auto& actions : schedule.ranks)
    actions.clear();
  auto is_left = [&](const Action& action) {
    return std::find(left.begin(), left.end(), action) != left.end();
  };
  while (!left.empty()) {
    auto choice = left.begin() + draw(random, 0, static_cast<int>(left.size()) - 1);
    Predecessors found = index.predecessors(*choice);
    if (std::any_of(found.begin(), found.end(), is_left))
      continue;
    schedule.ranks[index.rank(*choice)].push_back(*choice);
    left.erase(choice);
  }
  return schedule;
}

}  // namespace gpipe::plan
