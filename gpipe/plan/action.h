#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace gpipe::plan {

/// What a rank can be told to do. The first five are compute actions and make up a schedule; the
/// others are added by lowering (lower.h). Letters as in torch.distributed.pipelining; the
/// zero-bubble paper's B is our I, its BW our B.
enum class Op {
  Forward,         ///< F
  Backward,        ///< B: gradients of inputs and weights
  BackwardInput,   ///< I: gradients of inputs only
  BackwardWeight,  ///< W: gradients of weights only, after I
  Recompute,       ///< R: runs a dropped forward again, before B or I
  SendActivation,  ///< SEND_F: output of (stage, micro-batch) to stage + 1
  RecvActivation,  ///< RECV_F: input of (stage, micro-batch) from stage - 1
  SendGradient,    ///< SEND_B: gradient of the input of (stage, micro-batch) to stage - 1
  RecvGradient,    ///< RECV_B: gradient of the output of (stage, micro-batch) from stage + 1
};

/// How many values Op has.
inline constexpr int kNumOps = 9;

/// One entry of a schedule or of a program. Printed `2F0`: stage 2, forward, micro-batch 0.
struct Action {
  Op op = Op::Forward;
  int stage = 0;
  int micro_batch = 0;

  auto operator<=>(const Action&) const = default;
};

/// Whether the op is one of the five that may stand in a schedule: F, B, I, W, R.
bool is_compute(Op op);

/// `F`, `B`, `I`, `W`, `R`, `SEND_F`, `RECV_F`, `SEND_B`, `RECV_B`.
std::string_view to_string(Op op);

/// The op in words, for messages and traces: `forward`, `backward`, `recompute`, ...
std::string_view name_of(Op op);

/// Stage, op, micro-batch: `2F0`, `1RECV_B3`.
std::string to_string(const Action& action);

/// Inverse of to_string. Throws Error on any other text.
Action action_from_string(std::string_view text);

}  // namespace gpipe::plan
