#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include "gpipe/base/error.h"
#include "gpipe/core/transport.h"
#include "gpipe/core/worker_threads.h"
#include "gpipe/plan/lower.h"
#include "gpipe/plan/timeline.h"

namespace gpipe {

/// What the executor needs of a stage during one mini-batch: the seam between schedules and modules. The first stage is
/// given an empty value and takes its inputs by itself; so does the last for its gradients. All members are called by
/// the thread of the stage's rank, in the order of its program.
template <class Value>
class StageTask {
 public:
  virtual ~StageTask() = default;
  virtual Value forward(int micro_batch, Value input) = 0;
  virtual void recompute(int micro_batch) = 0;
  virtual Value backward(int micro_batch, Value gradient) = 0;
};

/// Runs programs: the second interpreter of a lowered schedule, beside the simulator. Knows nothing of modules or
/// tensors; a Value is whatever passes between stages.
template <class Value>
class Executor {
 public:
  /// `stage_ranks` [K] says which rank holds each stage. Workers and transport must outlive the executor.
  Executor(
      std::vector<plan::Program> programs,
      std::vector<int> stage_ranks,
      int num_micro_batches,
      WorkerThreads& workers,
      Transport<Value>& transport)
      : programs_(std::move(programs)),
        stage_ranks_(std::move(stage_ranks)),
        num_micro_batches_(num_micro_batches),
        workers_(&workers),
        transport_(&transport) {}

  /// Runs every rank's program on its worker over the stages [K], and says what ran when. If an action throws, no rank
  /// starts another action; the first error is thrown here once all ranks have stopped, and the transport is reset.
  plan::Timeline run(const std::vector<StageTask<Value>*>& stages) {
    Run run(*this, stages);
    workers_->run([&](int rank) { run.run_rank(rank); });
    if (run.failed)
      transport_->reset();
    run.error.rethrow();
    return std::move(run.timeline);
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// One mini-batch: what is under way between the stages. Every slot belongs to one rank's thread.
  struct Run {
    Run(Executor& owner, const std::vector<StageTask<Value>*>& tasks)
        : executor(owner), stages(tasks), start(Clock::now()) {
      const size_t num_slots = stages.size() * static_cast<size_t>(executor.num_micro_batches_);
      for (auto* slots : {&activations_in, &activations_out, &gradients_in, &gradients_out})
        slots->resize(num_slots);
      timeline.ranks.resize(executor.programs_.size());
    }

    void run_rank(int rank) {
      const plan::Program& program = executor.programs_[static_cast<size_t>(rank)];
      auto& spans = timeline.ranks[static_cast<size_t>(rank)];
      spans.reserve(program.size());
      try {
        for (const plan::Action& action : program) {
          if (failed.load(std::memory_order_relaxed))
            return;
          const double begin = now();
          perform(action);
          spans.push_back({action, begin, now()});
        }
      } catch (const TransportClosed&) {
        // Another rank has failed and reports it.
      } catch (...) {
        error.set(std::current_exception());
        failed.store(true);
        executor.transport_->close();
      }
    }

    void perform(const plan::Action& action) {
      const auto [op, stage, micro_batch] = action;
      StageTask<Value>& task = *stages[static_cast<size_t>(stage)];
      const int rank = executor.rank_of(stage);
      switch (op) {
        case plan::Op::Forward: {
          Value output =
              task.forward(micro_batch, std::move(slot(activations_in, stage, micro_batch)));
          hand_on(
              activations_in, activations_out, stage, stage + 1, micro_batch, std::move(output));
          break;
        }
        case plan::Op::Recompute:
          task.recompute(micro_batch);
          break;
        case plan::Op::Backward: {
          Value gradient =
              task.backward(micro_batch, std::move(slot(gradients_in, stage, micro_batch)));
          hand_on(gradients_in, gradients_out, stage, stage - 1, micro_batch, std::move(gradient));
          break;
        }
        case plan::Op::SendActivation:
          executor.transport_->send(
              rank,
              executor.rank_of(stage + 1),
              action,
              std::move(slot(activations_out, stage, micro_batch)));
          break;
        case plan::Op::SendGradient:
          executor.transport_->send(
              rank,
              executor.rank_of(stage - 1),
              action,
              std::move(slot(gradients_out, stage, micro_batch)));
          break;
        case plan::Op::RecvActivation:
          slot(activations_in, stage, micro_batch) =
              executor.transport_->receive(executor.rank_of(stage - 1), rank, action);
          break;
        case plan::Op::RecvGradient:
          slot(gradients_in, stage, micro_batch) =
              executor.transport_->receive(executor.rank_of(stage + 1), rank, action);
          break;
        default:
          throw InternalError("[executor] cannot run " + plan::to_string(action));
      }
    }

    /// To the neighbour of the same rank at once, else to the slot that the send will take it from.
    void hand_on(
        std::vector<Value>& in,
        std::vector<Value>& out,
        int from,
        int to,
        int micro_batch,
        Value value) {
      if (to < 0 || to >= static_cast<int>(stages.size()))
        return;
      if (executor.rank_of(to) == executor.rank_of(from)) {
        slot(in, to, micro_batch) = std::move(value);
      } else {
        slot(out, from, micro_batch) = std::move(value);
      }
    }

    Value& slot(std::vector<Value>& slots, int stage, int micro_batch) {
      return slots[static_cast<size_t>(stage * executor.num_micro_batches_ + micro_batch)];
    }

    double now() const { return std::chrono::duration<double>(Clock::now() - start).count(); }

    Executor& executor;
    const std::vector<StageTask<Value>*>& stages;
    Clock::time_point start;
    std::vector<Value> activations_in;
    std::vector<Value> activations_out;
    std::vector<Value> gradients_in;
    std::vector<Value> gradients_out;
    plan::Timeline timeline;
    FirstError error;
    std::atomic<bool> failed{false};
  };

  int rank_of(int stage) const { return stage_ranks_[static_cast<size_t>(stage)]; }

  std::vector<plan::Program> programs_;
  std::vector<int> stage_ranks_;
  int num_micro_batches_;
  WorkerThreads* workers_;
  Transport<Value>* transport_;
};

}  // namespace gpipe
