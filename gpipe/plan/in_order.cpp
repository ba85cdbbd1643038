#include "gpipe/plan/in_order.h"

namespace gpipe::plan {

void InOrderRun::enqueue(int rank) {
  if (is_queued_[rank])
    return;
  is_queued_[rank] = true;
  queue_.push_back(rank);
}

void InOrderRun::enqueue_neighbours(int stage) {
  const auto& ranks = index_.stage_ranks();
  if (stage > 0 && ranks[stage - 1] != ranks[stage])
    enqueue(ranks[stage - 1]);
  if (stage + 1 < index_.num_stages() && ranks[stage + 1] != ranks[stage])
    enqueue(ranks[stage + 1]);
}

std::string InOrderRun::describe_wait(const Action& action) const {
  std::string text;
  for (const Action& predecessor : index_.predecessors(action)) {
    if (is_done(predecessor))
      continue;
    text += text.empty() ? " waits for " : " and ";
    text += to_string(predecessor);
    if (!index_.contains(predecessor))
      text += " (not listed)";
    else if (index_.rank(predecessor) != index_.rank(action))
      text += " of rank " + std::to_string(index_.rank(predecessor));
  }
  return text.empty() ? " waits for its receive" : text;
}

std::string InOrderRun::describe_stuck() const {
  std::string text;
  int num_stuck = 0;
  for (int rank = 0; rank < static_cast<int>(lists_.size()); ++rank) {
    const Action* action = current(rank);
    if (!action || ++num_stuck > kMaxNamed)
      continue;
    text += text.empty() ? "rank " : "; rank ";
    text += std::to_string(rank) + " at " + to_string(*action) + describe_wait(*action);
  }
  if (num_stuck > kMaxNamed)
    text += "; and " + std::to_string(num_stuck - kMaxNamed) + " more ranks";
  return text;
}

}  // namespace gpipe::plan
