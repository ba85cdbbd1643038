#pragma once

#include <vector>

#include "gpipe/core/boundary.h"
#include "gpipe/core/executor.h"
#include "gpipe/core/layer_scope.h"
#include "gpipe/core/stage.h"

namespace gpipe {

/// A stage at work on one mini-batch: each (stage, micro-batch) is an autograd graph of its own with detached boundaries,
/// and the calling thread runs the engine on it. Errors are thrown as StageError.
class StageRun : public StageTask<Message> {
 public:
  /// All must outlive the run. The first stage takes its inputs from the mini-batch, the last computes the loss or leaves
  /// the outputs there.
  /// `rematerialize` [M]: whether a micro-batch's graph is dropped, to be recomputed.
  StageRun(
      Stage& stage,
      MiniBatch& mini_batch,
      const std::vector<bool>& rematerialize,
      bool is_first,
      bool is_last);

  Message forward(int micro_batch, Message input) override;
  void recompute(int micro_batch) override;
  Message backward(int micro_batch, Message gradient) override;

 private:
  /// What a micro-batch keeps between forward and backward.
  struct Saved {
    Message inputs;                   // for the recompute
    BoundaryInputs boundary;          // of the graph
    std::vector<detail::Edge> roots;  // of the graph: one per output, or the loss alone
    at::Tensor root_gradient;         // of the loss
  };

  template <class Work>
  auto guarded(plan::Op op, int micro_batch, bool silent, const Work& work);

  Message first_input(int micro_batch) const;
  Tensors run_layers(LayerScope& scope, const Tensors& inputs);
  Message run_without_graph(LayerScope& scope, const Message& input);
  Message run_and_drop(LayerScope& scope, Message input);
  Message run_and_keep(LayerScope& scope, int micro_batch, const Message& input);
  void keep_loss(LayerScope& scope, int micro_batch, const Tensors& outputs);
  void finish(int micro_batch, const Message& output);
  Message guard_inputs(const Message& input) const;
  void note_change(bool has_changed, bool has_aliases);

  Stage& stage_;
  MiniBatch& batch_;
  const std::vector<bool>& rematerialize_;
  bool is_first_;
  bool is_last_;
  std::vector<Saved> saved_;
};

}  // namespace gpipe
