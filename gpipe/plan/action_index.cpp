#include "gpipe/plan/action_index.h"

#include "gpipe/base/error.h"

namespace gpipe::plan {

ActionIndex::ActionIndex(int num_stages, int num_micro_batches, const ActionLists& lists)
    : num_stages_(num_stages), num_micro_batches_(num_micro_batches) {
  GPIPE_CHECK(
      num_stages >= 1 && num_micro_batches >= 1 && !lists.empty(),
      "[schedule] ",
      num_stages,
      " stages, ",
      num_micro_batches,
      " micro-batches and ",
      lists.size(),
      " ranks; at least one of each is needed");
  stage_ranks_.assign(num_stages, -1);
  for (int rank = 0; rank < static_cast<int>(lists.size()); ++rank) {
    for (int position = 0; position < static_cast<int>(lists[rank].size()); ++position)
      add(lists[rank][position], rank, position);
  }
  for (int stage = 0; stage < num_stages; ++stage) {
    GPIPE_CHECK(
        stage_ranks_[stage] >= 0,
        "[schedule] stage ",
        stage,
        " of ",
        num_stages,
        " is on no rank; give it its actions on one");
  }
}

bool ActionIndex::is_in_range(const Action& action) const {
  return action.stage >= 0 && action.stage < num_stages_ && action.micro_batch >= 0 &&
         action.micro_batch < num_micro_batches_;
}

std::size_t ActionIndex::slot(const Action& action) const {
  return static_cast<std::size_t>(action.stage) * num_micro_batches_ + action.micro_batch;
}

void ActionIndex::add(const Action& action, int rank, int position) {
  place_stage(action, rank);
  auto& positions = positions_[static_cast<int>(action.op)];
  if (positions.empty())
    positions.assign(static_cast<std::size_t>(num_stages_) * num_micro_batches_, -1);
  int& known = positions[slot(action)];
  GPIPE_CHECK(
      known < 0,
      "[schedule] ",
      to_string(action),
      " is listed twice on rank ",
      rank,
      ", at positions ",
      known,
      " and ",
      position,
      "; remove one");
  known = position;
}

void ActionIndex::place_stage(const Action& action, int rank) {
  GPIPE_CHECK(
      is_in_range(action),
      "[schedule] ",
      to_string(action),
      " on rank ",
      rank,
      " is outside of ",
      num_stages_,
      " stages and ",
      num_micro_batches_,
      " micro-batches, which are counted from 0");
  int& stage_rank = stage_ranks_[action.stage];
  GPIPE_CHECK(
      stage_rank < 0 || stage_rank == rank,
      "[schedule] ",
      to_string(action),
      " is misplaced on rank ",
      rank,
      ": stage ",
      action.stage,
      " is on rank ",
      stage_rank,
      "; keep all actions of a stage on one rank");
  stage_rank = rank;
}

int ActionIndex::position(const Action& action) const {
  const auto& positions = positions_[static_cast<int>(action.op)];
  return positions.empty() || !is_in_range(action) ? -1 : positions[slot(action)];
}

Action ActionIndex::gradient_producer(int stage, int micro_batch) const {
  Action input_gradient{Op::BackwardInput, stage, micro_batch};
  return contains(input_gradient) ? input_gradient : Action{Op::Backward, stage, micro_batch};
}

void ActionIndex::add_backward_predecessors(const Action& action, Predecessors& found) const {
  auto [op, stage, micro_batch] = action;
  found.push_back({Op::Forward, stage, micro_batch});
  Action recompute{Op::Recompute, stage, micro_batch};
  if (contains(recompute))
    found.push_back(recompute);
  Action receive{Op::RecvGradient, stage, micro_batch};
  if (contains(receive))
    found.push_back(receive);
  else if (stage + 1 < num_stages_)
    found.push_back(gradient_producer(stage + 1, micro_batch));
}

Predecessors ActionIndex::predecessors(const Action& action) const {
  auto [op, stage, micro_batch] = action;
  Predecessors found;
  switch (op) {
    case Op::Forward: {
      Action receive{Op::RecvActivation, stage, micro_batch};
      if (contains(receive))
        found.push_back(receive);
      else if (stage > 0)
        found.push_back({Op::Forward, stage - 1, micro_batch});
      break;
    }
    case Op::Backward:
    case Op::BackwardInput:
      add_backward_predecessors(action, found);
      break;
    case Op::BackwardWeight:
      found.push_back({Op::BackwardInput, stage, micro_batch});
      break;
    case Op::Recompute:
    case Op::SendActivation:
      found.push_back({Op::Forward, stage, micro_batch});
      break;
    case Op::RecvActivation:
      found.push_back({Op::SendActivation, stage - 1, micro_batch});
      break;
    case Op::SendGradient:
      found.push_back(gradient_producer(stage, micro_batch));
      break;
    case Op::RecvGradient:
      found.push_back({Op::SendGradient, stage + 1, micro_batch});
      break;
  }
  return found;
}

}  // namespace gpipe::plan
