#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpipe/core/autograd_nodes.h"
#include "gpipe/core/deferred_batch_norm.h"
#include "gpipe/core/interception.h"
#include "gpipe/core/layer.h"
#include "gpipe/core/random_key.h"
#include "gpipe/core/tensors.h"

namespace gpipe {

/// The scope in which layers run one micro-batch on a thread: keys random draws, defers BatchNorm, and knows which layer
/// is running, in backward too. The pipeline's stages and the reference REF-MB run their layers in the same scope.
class LayerScope : public OperatorHooks {
 public:
  struct Options {
    uint64_t seed = 0;
    int64_t step = 0;
    int64_t micro_batch = 0;
    bool silent = false;                      ///< a recompute or a profile: statistics stay
    DeferredBatchNorm* batch_norm = nullptr;  ///< null leaves BatchNorm as it is
  };
  /// No layer is running.
  static constexpr int kNoLayer = -1;
  /// The loss, as a layer behind the last.
  static constexpr int kLoss = -2;

  explicit LayerScope(const Options& options);
  ~LayerScope() override;
  LayerScope(const LayerScope&) = delete;
  LayerScope& operator=(const LayerScope&) = delete;

  /// Layer `index` is about to run, or kLoss. Its draws start from its own key.
  void enter(int index, bool backward);

  /// The backward of layer `index` begins, or goes on.
  void enter_backward(int index);

  /// The layer that runs, or ran last: for messages.
  int current_layer() const { return layer_; }

  /// The scope of this thread, or null.
  static LayerScope* current();

  std::optional<uint64_t> take_random_key() override;
  std::optional<Statistics> batch_norm_scratch(const at::Tensor& running_mean) override;
  void batch_norm_done(
      const at::Tensor& running_mean,
      const Statistics& statistics,
      double momentum,
      int64_t count) override;

 private:
  Options options_;
  LayerScope* previous_;
  Interception interception_;
  int layer_ = kNoLayer;
  bool backward_ = false;
  bool is_key_taken_ = false;
};

/// Runs layer `index` in the scope. Where its backward begins, the scope enters the layer again, so that draws in backward
/// have a key of their own and errors a name.
Tensors run_layer(LayerScope& scope, const Layer& layer, int index, const Tensors& inputs);

/// The graph nodes that tensors come from.
std::vector<const torch::autograd::Node*> nodes_of(const Tensors& tensors);

/// Marks where the backward of `outputs` begins, for run_layer() and the loss. `before` are the nodes of the inputs before
/// the run, for an output may be an input that is passed on.
void mark_backward(
    int index, const std::vector<const torch::autograd::Node*>& before, const Tensors& outputs);

}  // namespace gpipe
