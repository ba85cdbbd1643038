#include "gpipe/plan/simulator.h"

#include <algorithm>

#include "gpipe/base/error.h"
#include "gpipe/plan/channels.h"
#include "gpipe/plan/in_order.h"

namespace gpipe::plan {
namespace {

int num_micro_batches_of(const std::vector<Program>& programs) {
  int last = 0;
  for (const Program& program : programs) {
    for (const Action& action : program)
      last = std::max(last, action.micro_batch);
  }
  return last + 1;
}

class Simulator {
 public:
  Simulator(
      const std::vector<Program>& programs,
      const std::vector<StageCost>& stages,
      const LinkCost& link)
      : programs_(programs),
        stages_(stages),
        link_(link),
        index_(static_cast<int>(stages.size()), num_micro_batches_of(programs), programs),
        channels_(index_.stage_ranks()),
        channel_free_seconds_(channels_.size(), 0) {}

  Timeline run() {
    timeline_.ranks.resize(programs_.size());
    for (std::size_t rank = 0; rank < programs_.size(); ++rank)
      timeline_.ranks[rank].reserve(programs_[rank].size());
    InOrderRun run(programs_, index_);
    bool is_finished = run.run(
        [&](const Action& action) { return run.is_ready(action); },
        [&](int rank, const Action& action) { add_span(rank, action); });
    GPIPE_CHECK(
        is_finished,
        "[simulator] deadlock: ",
        run.describe_stuck(),
        "; list each action behind those it waits for");
    return std::move(timeline_);
  }

 private:
  void add_span(int rank, const Action& action) {
    auto& spans = timeline_.ranks[rank];
    double start = spans.empty() ? 0 : spans.back().end_seconds;
    double end = start;
    if (is_receive(action.op)) {
      end = std::max(start, arrival_seconds(action));
    } else if (!is_send(action.op)) {
      // Without a receive a neighbour on another rank must be waited for here.
      for (const Action& predecessor : index_.predecessors(action))
        start = std::max(start, end_seconds(predecessor));
      end = start + compute_seconds(action);
    }
    spans.push_back({action, start, end});
  }

  double end_seconds(const Action& action) const {
    return timeline_.ranks[index_.rank(action)][index_.position(action)].end_seconds;
  }

  /// Receives are asked in the order of their channel, which is that of the sends.
  double arrival_seconds(const Action& receive) {
    const StageCost& stage = stages_[receive.stage];
    std::int64_t bytes = receive.op == Op::RecvActivation ? stage.input_bytes : stage.output_bytes;
    double& channel_free = channel_free_seconds_.at(channels_.of(receive));
    double departure = std::max(end_seconds(counterpart(receive)), channel_free);
    double arrival = departure + link_.seconds(bytes);
    channel_free = arrival - link_.latency_seconds;
    return arrival;
  }

  double compute_seconds(const Action& action) const {
    const StageCost& stage = stages_[action.stage];
    switch (action.op) {
      case Op::Forward:
        return stage.forward_seconds;
      case Op::Backward:
        return stage.backward_seconds;
      case Op::BackwardInput:
        return stage.backward_input_seconds;
      case Op::BackwardWeight:
        return stage.backward_weight_seconds;
      case Op::Recompute:
        return stage.recompute_seconds;
      default:
        return 0;
    }
  }

  const std::vector<Program>& programs_;
  const std::vector<StageCost>& stages_;
  LinkCost link_;
  ActionIndex index_;
  Channels channels_;
  /// When the last message of each channel has left.
  std::vector<double> channel_free_seconds_;
  Timeline timeline_;
};

}  // namespace

Simulation simulate(
    const std::vector<Program>& programs,
    const std::vector<StageCost>& stages,
    const LinkCost& link) {
  Simulation simulation;
  simulation.peaks = in_flight_peaks(programs, stages);
  simulation.timeline = Simulator(programs, stages, link).run();
  simulation.step_seconds = simulation.timeline.duration_seconds();
  simulation.bubble_ratio = simulation.timeline.bubble_ratio();
  return simulation;
}

}  // namespace gpipe::plan
