#include "gpipe/plan/schedule.h"

#include "gpipe/base/error.h"
#include "gpipe/plan/action_index.h"
#include "gpipe/plan/in_order.h"

namespace gpipe::plan {
namespace {

ActionIndex index_of(const Schedule& schedule) {
  return ActionIndex(schedule.num_stages, schedule.num_micro_batches, schedule.ranks);
}

void check_compute_only(const Schedule& schedule) {
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    for (const Action& action : schedule.ranks[rank]) {
      GPIPE_CHECK(
          is_compute(action.op),
          "[schedule] ",
          to_string(action),
          " on rank ",
          rank,
          " is not a compute action; leave sends and receives to lowering");
    }
  }
}

void check_complete(const ActionIndex& index, int stage, int micro_batch) {
  auto has = [&](Op op) { return index.contains({op, stage, micro_batch}); };
  auto check_present = [&](Op op) {
    GPIPE_CHECK(
        has(op),
        "[schedule] ",
        to_string(Action{op, stage, micro_batch}),
        " is missing on rank ",
        index.stage_ranks()[stage],
        "; every stage runs F and B (or I and W) once for each of the ",
        index.num_micro_batches(),
        " micro-batches");
  };
  check_present(Op::Forward);
  bool is_split = has(Op::BackwardInput) || has(Op::BackwardWeight);
  if (!is_split)
    return check_present(Op::Backward);
  check_present(Op::BackwardInput);
  check_present(Op::BackwardWeight);
  GPIPE_CHECK(
      !has(Op::Backward),
      "[schedule] ",
      to_string(Action{Op::Backward, stage, micro_batch}),
      " stands beside I and W of the same micro-batch on rank ",
      index.stage_ranks()[stage],
      "; keep either B or I and W");
}

/// Within a stage and micro-batch: F, then R, then B or I, then W.
void check_order(const ActionIndex& index, int stage, int micro_batch) {
  constexpr Op kOrder[] = {
      Op::Forward, Op::Recompute, Op::Backward, Op::BackwardInput, Op::BackwardWeight};
  Action previous{Op::Forward, stage, micro_batch};
  for (Op op : kOrder) {
    Action action{op, stage, micro_batch};
    if (!index.contains(action))
      continue;
    GPIPE_CHECK(
        index.position(previous) <= index.position(action),
        "[schedule] ",
        to_string(action),
        " is misplaced on rank ",
        index.rank(action),
        ": it stands before ",
        to_string(previous),
        "; put it behind");
    previous = action;
  }
}

}  // namespace

std::vector<int> stage_ranks(const Schedule& schedule) {
  return index_of(schedule).stage_ranks();
}

std::vector<Action> predecessors(const Schedule& schedule, const Action& action) {
  Predecessors found = index_of(schedule).predecessors(action);
  return {found.begin(), found.end()};
}

void validate(const Schedule& schedule) {
  ActionIndex index = index_of(schedule);
  check_compute_only(schedule);
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    for (int micro_batch = 0; micro_batch < schedule.num_micro_batches; ++micro_batch) {
      check_complete(index, stage, micro_batch);
      check_order(index, stage, micro_batch);
    }
  }
  InOrderRun run(schedule.ranks, index);
  bool is_finished = run.run(
      [&](const Action& action) { return run.is_ready(action); }, [](int, const Action&) {});
  GPIPE_CHECK(
      is_finished,
      "[schedule] deadlock: ",
      run.describe_stuck(),
      "; reorder these ranks so that none waits for an action behind its own");
}

}  // namespace gpipe::plan
