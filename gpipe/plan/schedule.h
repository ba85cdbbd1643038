#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpipe/plan/action.h"

namespace gpipe::plan {

/// What every rank computes, in order: a schedule is data. It holds compute actions only; lower()
/// completes it to programs.
struct Schedule {
  int num_stages = 1;
  int num_micro_batches = 1;
  /// Ordered actions of each rank.
  std::vector<std::vector<Action>> ranks;

  int num_ranks() const { return static_cast<int>(ranks.size()); }

  bool operator==(const Schedule&) const = default;
};

/// The rank that holds each stage, read from the schedule: [num_stages]. Throws Error where a stage
/// has no rank or two.
std::vector<int> stage_ranks(const Schedule& schedule);

/// The compute actions that must be done before `action` may start, on whichever rank. Reads the
/// whole schedule; who asks often keeps an ActionIndex (action_index.h), which states the
/// dependencies for this function as well.
std::vector<Action> predecessors(const Schedule& schedule, const Action& action);

/// Throws Error unless every stage runs F and B (or I and W) exactly once for each micro-batch, on
/// one rank, R at most once and between F and B, and the order cannot deadlock. A deadlock's text
/// names the stuck actions of each rank.
void validate(const Schedule& schedule);

/// One line a rank, actions separated by commas; an empty field is an idle slot and is skipped on
/// reading.
std::string to_csv(const Schedule& schedule);

/// Inverse of to_csv. Throws Error with line and column of the first field that is not an action.
Schedule schedule_from_csv(std::string_view csv);

}  // namespace gpipe::plan
