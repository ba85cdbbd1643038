#pragma once

#include <stdexcept>

#include "gpipe/plan/action.h"

namespace gpipe {

/// A transport was closed while a rank waited in receive(): another rank has failed. Never the first error.
class TransportClosed : public std::runtime_error {
 public:
  TransportClosed() : std::runtime_error("the transport was closed because another rank failed") {}
};

/// Moves values between ranks: the seam between the executor and what lies between ranks (threads, or processes).
/// Messages from one rank to another of one kind (activations, or gradients) arrive in the order they were sent.
template <class Value>
class Transport {
 public:
  virtual ~Transport() = default;

  /// Hands a value over and returns at once. `action` is the sender's SEND_F or SEND_B. Called by rank `from`'s thread.
  virtual void send(int from, int to, const plan::Action& action, Value value) = 0;

  /// Waits for the next value. `action` is the receiver's RECV_F or RECV_B. Called by rank `to`'s thread. Throws
  /// TransportClosed once the transport is closed.
  virtual Value receive(int from, int to, const plan::Action& action) = 0;

  /// Wakes all that wait and refuses to wait again. May be called from any thread.
  virtual void close() = 0;

  /// Forgets what was sent and opens again. Called while no rank is running.
  virtual void reset() = 0;
};

}  // namespace gpipe
