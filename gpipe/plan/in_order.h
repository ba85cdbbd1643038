#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "gpipe/plan/action_index.h"

namespace gpipe::plan {

/// Runs the lists of all ranks side by side, each in its order, as far as dependencies let them:
/// the engine under validation and simulation. An action waits only for actions of its own stage
/// and of the two neighbours, so a rank is looked at again only when one of those has moved; the
/// whole run takes time linear in the number of actions. Refers to `lists` and `index`.
class InOrderRun {
 public:
  InOrderRun(const ActionLists& lists, const ActionIndex& index)
      : lists_(lists), index_(index), next_(lists.size(), 0), is_queued_(lists.size(), false) {}

  bool is_done(const Action& action) const {
    int position = index_.position(action);
    return position >= 0 && position < next_[index_.rank(action)];
  }

  /// Whether all predecessors of `action` are done.
  bool is_ready(const Action& action) const {
    for (const Action& predecessor : index_.predecessors(action)) {
      if (!is_done(predecessor))
        return false;
    }
    return true;
  }

  /// The action `rank` has come to; null where its list has ended.
  const Action* current(int rank) const {
    const auto& list = lists_[rank];
    return next_[rank] < static_cast<int>(list.size()) ? &list[next_[rank]] : nullptr;
  }

  /// Takes each action for which `may_run(action)` holds, and calls `visit(rank, action)` for it.
  /// Returns whether all lists came to their end.
  template <class MayRun, class Visit>
  bool run(MayRun&& may_run, Visit&& visit);

  /// Names the action each rank is stuck at and what it waits for, at most kMaxNamed ranks.
  std::string describe_stuck() const;

 private:
  static constexpr int kMaxNamed = 16;

  void enqueue(int rank);
  void enqueue_neighbours(int stage);
  std::string describe_wait(const Action& action) const;

  const ActionLists& lists_;
  const ActionIndex& index_;
  /// Per rank: how many of its actions have run.
  std::vector<int> next_;
  std::vector<bool> is_queued_;
  std::deque<int> queue_;
};

template <class MayRun, class Visit>
bool InOrderRun::run(MayRun&& may_run, Visit&& visit) {
  for (int rank = 0; rank < static_cast<int>(lists_.size()); ++rank)
    enqueue(rank);
  while (!queue_.empty()) {
    int rank = queue_.front();
    queue_.pop_front();
    is_queued_[rank] = false;
    bool moved = false;
    const Action* action = current(rank);
    for (; action && may_run(*action); action = current(rank)) {
      visit(rank, *action);
      ++next_[rank];
      enqueue_neighbours(action->stage);
      moved = true;
    }
    // A send that waits for its receive lets the receiver look.
    if (moved && action)
      enqueue_neighbours(action->stage);
  }
  for (int rank = 0; rank < static_cast<int>(lists_.size()); ++rank) {
    if (current(rank))
      return false;
  }
  return true;
}

}  // namespace gpipe::plan
