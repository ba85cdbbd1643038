#include "gpipe/plan/lower.h"

#include <algorithm>
#include <array>
#include <string>

#include "gpipe/base/error.h"
#include "gpipe/base/nearest.h"
#include "gpipe/plan/action_index.h"
#include "gpipe/plan/channels.h"

namespace gpipe::plan {
namespace {

constexpr std::array<std::string_view, 3> kModeNames = {"always", "except_last", "never"};

bool needs_gradient(Op op) {
  return op == Op::Backward || op == Op::BackwardInput;
}

/// The message that carries the result of `action` to a neighbouring stage, or its own op where it
/// makes none.
Action send_after(Action action) {
  if (action.op == Op::Forward)
    action.op = Op::SendActivation;
  else if (needs_gradient(action.op))
    action.op = Op::SendGradient;
  return action;
}

Action receive_before(Action action) {
  if (action.op == Op::Forward)
    action.op = Op::RecvActivation;
  else if (needs_gradient(action.op))
    action.op = Op::RecvGradient;
  return action;
}

class Lowering {
 public:
  Lowering(const Schedule& schedule, Rematerialize mode)
      : schedule_(schedule),
        mode_(mode),
        index_(schedule.num_stages, schedule.num_micro_batches, schedule.ranks),
        channels_(index_.stage_ranks()),
        incoming_(channels_.size()) {}

  std::vector<Program> run() {
    for (const auto& actions : schedule_.ranks) {
      for (const Action& action : actions)
        announce(action);
    }
    std::vector<Program> programs;
    for (const auto& actions : schedule_.ranks)
      programs.push_back(lower_rank(actions));
    return programs;
  }

 private:
  /// Receives of one channel in the order of their sends, and how many have been placed.
  struct Incoming {
    std::vector<Action> receives;
    std::size_t num_placed = 0;
  };

  void announce(const Action& action) {
    Action send = send_after(action);
    int channel = is_compute(send.op) ? -1 : channels_.of(send);
    if (channel >= 0)
      incoming_[channel].receives.push_back(counterpart(send));
  }

  Program lower_rank(const std::vector<Action>& actions) {
    Program program;
    program.reserve(actions.size() * 7 / 2);
    std::vector<Action> last(schedule_.num_stages);
    for (const Action& action : actions) {
      if (needs_recompute(action, last[action.stage]))
        program.push_back({Op::Recompute, action.stage, action.micro_batch});
      place_receives(action, program);
      program.push_back(action);
      place_send(action, program);
      last[action.stage] = action;
    }
    return program;
  }

  bool needs_recompute(const Action& action, const Action& last_of_stage) const {
    if (mode_ == Rematerialize::Never || !needs_gradient(action.op) ||
        index_.contains({Op::Recompute, action.stage, action.micro_batch}))
      return false;
    Action forward{Op::Forward, action.stage, action.micro_batch};
    return mode_ == Rematerialize::Always || last_of_stage != forward;
  }

  /// Places the channel's receives up to the one `action` needs, unless a later one of the channel
  /// was needed before.
  void place_receives(const Action& action, Program& program) {
    Action receive = receive_before(action);
    int channel = is_compute(receive.op) ? -1 : channels_.of(receive);
    if (channel < 0 || is_placed(receive))
      return;
    Incoming& incoming = incoming_[channel];
    while (!is_placed(receive)) {
      const Action& next = incoming.receives[incoming.num_placed++];
      program.push_back(next);
      mark_placed(next);
    }
  }

  void place_send(const Action& action, Program& program) {
    Action send = send_after(action);
    if (!is_compute(send.op) && channels_.of(send) >= 0)
      program.push_back(send);
  }

  std::vector<bool>::reference placed(const Action& receive) {
    auto& flags = placed_[receive.op == Op::RecvGradient ? 1 : 0];
    if (flags.empty())
      flags.resize(static_cast<std::size_t>(schedule_.num_stages) * schedule_.num_micro_batches);
    return flags
        [static_cast<std::size_t>(receive.stage) * schedule_.num_micro_batches +
         receive.micro_batch];
  }

  bool is_placed(const Action& receive) { return placed(receive); }
  void mark_placed(const Action& receive) { placed(receive) = true; }

  const Schedule& schedule_;
  Rematerialize mode_;
  ActionIndex index_;
  Channels channels_;
  std::vector<Incoming> incoming_;
  /// Receives of activations and of gradients that are placed: [num_stages * num_micro_batches].
  std::array<std::vector<bool>, 2> placed_;
};

}  // namespace

std::string_view to_string(Rematerialize mode) {
  return kModeNames.at(static_cast<int>(mode));
}

Rematerialize rematerialize_from_string(std::string_view text) {
  auto found = std::find(kModeNames.begin(), kModeNames.end(), text);
  GPIPE_CHECK(
      found != kModeNames.end(),
      "[schedule] unknown re-materialization mode `",
      text,
      "`",
      did_you_mean(text, {kModeNames.begin(), kModeNames.end()}),
      "; use always, except_last or never");
  return static_cast<Rematerialize>(found - kModeNames.begin());
}

std::vector<Program> lower(const Schedule& schedule, Rematerialize mode) {
  validate(schedule);
  return Lowering(schedule, mode).run();
}

}  // namespace gpipe::plan
