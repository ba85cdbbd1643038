#pragma once

#include <array>
#include <vector>

#include "gpipe/plan/action.h"

namespace gpipe::plan {

/// The channels between ranks: one for each pair (from, to) and kind, activations or gradients.
/// Several stages of a rank may share one.
class Channels {
 public:
  explicit Channels(const std::vector<int>& stage_ranks);

  int size() const { return size_; }

  /// The channel of a send or receive; -1 where its border lies within one rank, or outside of the
  /// model.
  int of(const Action& message) const;

 private:
  /// Per border, between stages b and b + 1: the channel of activations and that of gradients.
  std::vector<std::array<int, 2>> borders_;
  int size_ = 0;
};

bool is_send(Op op);
bool is_receive(Op op);

/// The receive of a send, and the send of a receive.
Action counterpart(const Action& message);

}  // namespace gpipe::plan
