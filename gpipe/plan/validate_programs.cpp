#include <algorithm>

#include "gpipe/base/error.h"
#include "gpipe/plan/channels.h"
#include "gpipe/plan/in_order.h"
#include "gpipe/plan/lower.h"

namespace gpipe::plan {
namespace {

Schedule compute_schedule(const std::vector<Program>& programs) {
  Schedule schedule;
  for (const Program& program : programs) {
    auto& actions = schedule.ranks.emplace_back();
    for (const Action& action : program) {
      if (!is_compute(action.op))
        continue;
      actions.push_back(action);
      schedule.num_stages = std::max(schedule.num_stages, action.stage + 1);
      schedule.num_micro_batches = std::max(schedule.num_micro_batches, action.micro_batch + 1);
    }
  }
  return schedule;
}

void check_message(const ActionIndex& index, const Channels& channels, const Action& message) {
  bool is_needed = channels.of(message) >= 0;
  GPIPE_CHECK(
      index.contains(message) == is_needed,
      "[schedule] ",
      to_string(message),
      is_needed ? " is missing on rank " : " is needless on rank ",
      index.rank(message),
      is_needed ? "; add it, since the neighbouring stage is on another rank"
                : "; remove it, since there is no neighbouring stage on another rank");
}

void check_messages(const ActionIndex& index, const Channels& channels) {
  constexpr Op kMessages[] = {
      Op::SendActivation, Op::RecvActivation, Op::SendGradient, Op::RecvGradient};
  for (int stage = 0; stage < index.num_stages(); ++stage) {
    for (int micro_batch = 0; micro_batch < index.num_micro_batches(); ++micro_batch) {
      for (Op op : kMessages)
        check_message(index, channels, {op, stage, micro_batch});
    }
  }
}

/// The messages of each channel as one of its sides lists them, written as sends.
template <class IsSide>
ActionLists messages_of(
    const std::vector<Program>& programs, const Channels& channels, IsSide&& is_side) {
  ActionLists messages(channels.size());
  for (const Program& program : programs) {
    for (const Action& action : program) {
      if (is_side(action.op))
        messages[channels.of(action)].push_back(is_send(action.op) ? action : counterpart(action));
    }
  }
  return messages;
}

void check_channel_order(const std::vector<Program>& programs, const Channels& channels) {
  ActionLists sent = messages_of(programs, channels, is_send);
  ActionLists received = messages_of(programs, channels, is_receive);
  for (std::size_t channel = 0; channel < sent.size(); ++channel) {
    auto [send, receive] =
        std::mismatch(sent[channel].begin(), sent[channel].end(), received[channel].begin());
    if (send == sent[channel].end())
      continue;
    throw Error(detail::concatenate(
        "[schedule] the order of messages differs: ",
        to_string(*send),
        " is sent where ",
        to_string(counterpart(*receive)),
        " is received; list the receives in the order of their sends"));
  }
}

/// A send meets its receive when both ranks have come to them.
bool meets_receive(const InOrderRun& run, const ActionIndex& index, const Action& message) {
  if (is_send(message.op))
    return run.is_done(counterpart(message));
  const Action* current = run.current(index.rank(counterpart(message)));
  return current && *current == counterpart(message) && run.is_ready(*current);
}

void check_progress(const std::vector<Program>& programs, const ActionIndex& index, Sends sends) {
  InOrderRun run(programs, index);
  bool is_finished = run.run(
      [&](const Action& action) {
        if (sends == Sends::Asynchronous || is_compute(action.op))
          return run.is_ready(action);
        return meets_receive(run, index, action);
      },
      [](int, const Action&) {});
  GPIPE_CHECK(
      is_finished,
      "[schedule] deadlock of programs: ",
      run.describe_stuck(),
      sends == Sends::Rendezvous ? "; let sends go on without waiting, or use `gpipe`"
                                 : "; list each action behind those it waits for");
}

}  // namespace

void validate_programs(const std::vector<Program>& programs, Sends sends) {
  Schedule schedule = compute_schedule(programs);
  validate(schedule);
  ActionIndex index(schedule.num_stages, schedule.num_micro_batches, programs);
  Channels channels(index.stage_ranks());
  check_messages(index, channels);
  check_channel_order(programs, channels);
  check_progress(programs, index, sends);
}

}  // namespace gpipe::plan
