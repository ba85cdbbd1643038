#pragma once

#include <memory>
#include <vector>

#include "gpipe/core/autograd_nodes.h"
#include "gpipe/core/tensors.h"

namespace gpipe {

/// What passes between stages: tensors without graph, and for activations which of them a gradient is wanted for.
struct Message {
  Tensors tensors;
  std::vector<bool> requires_grad;  ///< empty for gradients
};

/// Outputs of a stage as a message: the same memory and strides, no graph.
Message detach(const Tensors& outputs);

/// The detached inputs of one graph. No graph spans stages: the tensors that a stage receives become aliases that are not
/// leaves, so that a layer may change them in place, and whose gradients end here.
class BoundaryInputs {
 public:
  BoundaryInputs() = default;
  /// Aliases of the message's memory.
  explicit BoundaryInputs(const Message& message);

  const Tensors& tensors() const { return tensors_; }
  /// Lets go of the aliases; the graph keeps what it needs of them.
  void release_tensors() { tensors_.clear(); }

  /// Whether a layer changed one of the aliases in place.
  bool is_changed() const;

  /// Gradients of all inputs after a backward, undefined where there is none; they are handed over.
  Tensors take_gradients();

 private:
  Tensors tensors_;
  std::vector<size_t> slots_;  // input index of each of the node's slots
  size_t num_inputs_ = 0;
  detail::NodePtr node_;
};

}  // namespace gpipe
