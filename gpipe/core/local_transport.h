#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gpipe/base/channel.h"
#include "gpipe/base/error.h"
#include "gpipe/core/transport.h"

namespace gpipe {

/// A transport between threads of one process: a channel for each pair of ranks and kind of message.
template <class Value>
class LocalTransport : public Transport<Value> {
 public:
  explicit LocalTransport(int num_ranks)
      : num_ranks_(num_ranks), channels_(static_cast<size_t>(num_ranks) * num_ranks * 2) {
    reset();
  }

  void send(int from, int to, const plan::Action& action, Value value) override {
    channel(from, to, action).push({action.micro_batch, std::move(value)});
  }

  Value receive(int from, int to, const plan::Action& action) override {
    std::optional<Message> message = channel(from, to, action).pop();
    if (!message)
      throw TransportClosed();
    GPIPE_ASSERT(
        message->micro_batch == action.micro_batch,
        plan::to_string(action),
        " got micro-batch ",
        message->micro_batch,
        " from rank ",
        from);
    return std::move(message->value);
  }

  void close() override {
    for (auto& channel : channels_)
      channel->close();
  }

  void reset() override {
    for (auto& channel : channels_)
      channel = std::make_unique<Channel<Message>>();
  }

 private:
  struct Message {
    int micro_batch = 0;
    Value value;
  };

  Channel<Message>& channel(int from, int to, const plan::Action& action) {
    const bool is_gradient =
        action.op == plan::Op::SendGradient || action.op == plan::Op::RecvGradient;
    const int pair = from * num_ranks_ + to;
    return *channels_[static_cast<size_t>(pair * 2 + (is_gradient ? 1 : 0))];
  }

  int num_ranks_;
  std::vector<std::unique_ptr<Channel<Message>>> channels_;
};

}  // namespace gpipe
