#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "gpipe/plan/action.h"

namespace gpipe::plan {

/// Ordered actions of each rank: those of a schedule, or programs.
using ActionLists = std::vector<std::vector<Action>>;

/// Up to three actions, held in place.
class Predecessors {
 public:
  void push_back(const Action& action) { actions_[size_++] = action; }

  int size() const { return size_; }
  const Action* begin() const { return actions_.data(); }
  const Action* end() const { return actions_.data() + size_; }

 private:
  std::array<Action, 3> actions_;
  int size_ = 0;
};

/// Where each action stands in the lists of a schedule or of programs, and what it depends on.
/// Built in one pass over the lists; every question is then answered in constant time. Does not
/// refer to the lists after construction.
class ActionIndex {
 public:
  /// Throws Error where an action lies outside of `num_stages` and `num_micro_batches` or is listed
  /// twice, or a stage has no rank or two.
  ActionIndex(int num_stages, int num_micro_batches, const ActionLists& lists);

  int num_stages() const { return num_stages_; }
  int num_micro_batches() const { return num_micro_batches_; }

  /// The rank of each stage: [num_stages].
  const std::vector<int>& stage_ranks() const { return stage_ranks_; }
  int rank(const Action& action) const { return stage_ranks_[action.stage]; }

  /// Position in the list of the action's rank; -1 where it is not listed.
  int position(const Action& action) const;
  bool contains(const Action& action) const { return position(action) >= 0; }

  /// What computes the gradient that a stage hands to the one before: its I where it has one, else
  /// its B.
  Action gradient_producer(int stage, int micro_batch) const;

  /// The actions that must be done before `action` may start, on whichever rank. The only statement
  /// of dependencies:
  ///
  ///   F(s)       F(s-1), in a program with a border there RECV_F(s)
  ///   R(s)       F(s)
  ///   B(s) I(s)  F(s), R(s) where listed, and B or I of s+1, with a border RECV_B(s)
  ///   W(s)       I(s)
  ///   SEND_F(s)  F(s)                 RECV_F(s)  SEND_F(s-1)
  ///   SEND_B(s)  B(s) or I(s)         RECV_B(s)  SEND_B(s+1)
  Predecessors predecessors(const Action& action) const;

 private:
  bool is_in_range(const Action& action) const;
  std::size_t slot(const Action& action) const;
  void add(const Action& action, int rank, int position);
  void place_stage(const Action& action, int rank);
  void add_backward_predecessors(const Action& action, Predecessors& found) const;

  int num_stages_;
  int num_micro_batches_;
  std::vector<int> stage_ranks_;
  /// Per op: [num_stages * num_micro_batches], empty where the op does not occur.
  std::array<std::vector<int>, kNumOps> positions_;
};

}  // namespace gpipe::plan
