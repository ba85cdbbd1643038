#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gpipe/core/allocator.h"
#include "gpipe/core/deferred_batch_norm.h"
#include "gpipe/core/layer.h"
#include "gpipe/core/loss.h"
#include "gpipe/core/stage_buffers.h"
#include "gpipe/core/tensors.h"

namespace gpipe {

/// One contiguous run of layers on one device. Knows nothing of ranks, schedules or peers. What belongs to one mini-batch
/// is a StageRun.
class Stage {
 public:
  /// `first_layer` is the index of layers[0] in the network. The layers must be built; they are moved to the device.
  Stage(int index, int first_layer, Layers layers, c10::Device device);

  int index() const { return index_; }
  int first_layer() const { return first_layer_; }
  const Layers& layers() const { return layers_; }
  c10::Device device() const { return device_; }
  /// Each parameter once, in layer order.
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  DeferredBatchNorm& batch_norm() { return batch_norm_; }
  StageBuffers& buffers() { return buffers_; }
  Account& account() const { return *account_; }

  /// Whether a layer changes the stage's inputs in place, in training or in evaluation; unknown before the first run.
  std::optional<bool>& changes_inputs(bool is_training) {
    return changes_inputs_[is_training ? 1 : 0];
  }

 private:
  int index_;
  int first_layer_;
  Layers layers_;
  c10::Device device_;
  std::vector<at::Tensor> parameters_;
  DeferredBatchNorm batch_norm_;
  StageBuffers buffers_;
  std::shared_ptr<Account> account_;
  std::array<std::optional<bool>, 2> changes_inputs_;
};

/// What the stages of one mini-batch share with the caller. Each vector is [M]; an element belongs to the thread of the
/// first or the last stage while it runs.
struct MiniBatch {
  uint64_t seed = 0;
  int64_t step = 0;
  std::optional<c10::ScalarType> autocast;
  bool is_training = true;
  bool keeps_graphs = true;  ///< false: forward only
  bool defers_batch_norm = true;

  std::vector<Tensors> inputs;            ///< without graph
  std::vector<bool> inputs_require_grad;  ///< by input
  std::vector<Tensors> input_gradients;   ///< filled where an input requires a gradient

  /// step(): the loss of each micro-batch, and the weight it has in the mini-batch's.
  const Loss* loss = nullptr;
  std::vector<Tensors> targets;
  std::vector<double> loss_weights;
  std::vector<double> gradient_weights;
  std::vector<at::Tensor> losses;
  std::function<void(int, const Tensors&, const Tensors&)> observer;

  /// forward(): outputs without graph, and the gradients that come back.
  std::vector<Tensors> outputs;
  std::vector<bool> outputs_require_grad;  ///< by output
  std::vector<Tensors> output_gradients;

  int num_micro_batches() const { return static_cast<int>(inputs.size()); }
};

}  // namespace gpipe
