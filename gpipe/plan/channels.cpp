#include "gpipe/plan/channels.h"

#include <map>
#include <tuple>

#include "gpipe/base/error.h"

namespace gpipe::plan {

Channels::Channels(const std::vector<int>& stage_ranks) {
  std::map<std::tuple<int, int, int>, int> known;
  auto channel = [&](int from, int to, int kind) {
    auto [entry, is_new] = known.try_emplace({from, to, kind}, size_);
    size_ += is_new ? 1 : 0;
    return entry->second;
  };
  for (std::size_t border = 0; border + 1 < stage_ranks.size(); ++border) {
    int left = stage_ranks[border];
    int right = stage_ranks[border + 1];
    if (left == right)
      borders_.push_back({-1, -1});
    else
      borders_.push_back({channel(left, right, 0), channel(right, left, 1)});
  }
}

int Channels::of(const Action& message) const {
  GPIPE_ASSERT(!is_compute(message.op), to_string(message));
  bool is_right = message.op == Op::RecvActivation || message.op == Op::SendGradient;
  int border = is_right ? message.stage - 1 : message.stage;
  if (border < 0 || border >= static_cast<int>(borders_.size()))
    return -1;
  bool is_gradient = message.op == Op::SendGradient || message.op == Op::RecvGradient;
  return borders_[border][is_gradient ? 1 : 0];
}

bool is_send(Op op) {
  return op == Op::SendActivation || op == Op::SendGradient;
}

bool is_receive(Op op) {
  return op == Op::RecvActivation || op == Op::RecvGradient;
}

Action counterpart(const Action& message) {
  auto [op, stage, micro_batch] = message;
  switch (op) {
    case Op::SendActivation:
      return {Op::RecvActivation, stage + 1, micro_batch};
    case Op::RecvActivation:
      return {Op::SendActivation, stage - 1, micro_batch};
    case Op::SendGradient:
      return {Op::RecvGradient, stage - 1, micro_batch};
    case Op::RecvGradient:
      return {Op::SendGradient, stage + 1, micro_batch};
    default:
      throw InternalError("[internal] " + to_string(message) + " is no message");
  }
}

}  // namespace gpipe::plan
