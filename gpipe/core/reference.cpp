#include "gpipe/core/reference.h"

#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "gpipe/core/autocast_scope.h"
#include "gpipe/core/layer_scope.h"
#include "gpipe/core/micro_batch.h"

namespace gpipe {
namespace {

class Reference {
 public:
  Reference(const Layers& layers, const Loss& loss, const ReferenceOptions& options)
      : layers_(layers), loss_(loss), options_(options) {
    for (int i = 0; i < layers.size(); ++i) {
      if (layers[i].module())
        batch_norm_.watch(*layers[i].module());
    }
  }

  at::Tensor forward(int micro_batch, Tensors values, const Tensors& targets) {
    LayerScope scope(scope_options(micro_batch, /*silent=*/false));
    AutocastScope autocast(c10::kCPU, options_.autocast);
    for (int i = 0; i < layers_.size(); ++i)
      values = run_layer(scope, layers_[i], i, values);
    scope.enter(LayerScope::kLoss, /*backward=*/false);
    const auto before = nodes_of(values);
    at::Tensor loss = loss_(values, targets);
    mark_backward(LayerScope::kLoss, before, {loss});
    return loss;
  }

  void backward(int micro_batch, const at::Tensor& loss, double weight) {
    LayerScope scope(scope_options(micro_batch, /*silent=*/true));
    if (weight != 0)
      loss.backward(at::full_like(loss, weight * options_.gradient_scale));
  }

  void commit() { batch_norm_.commit(); }

 private:
  LayerScope::Options scope_options(int micro_batch, bool silent) {
    return {
        .seed = options_.seed,
        .step = options_.step,
        .micro_batch = micro_batch,
        .silent = silent,
        .batch_norm = &batch_norm_};
  }

  const Layers& layers_;
  const Loss& loss_;
  const ReferenceOptions& options_;
  DeferredBatchNorm batch_norm_;
};

}  // namespace

at::Tensor reference_step(
    const Layers& layers,
    const Values& inputs,
    const Values& targets,
    const Loss& loss,
    const ReferenceOptions& options) {
  const auto rows = split_rows(common_rows(inputs, targets), options.num_micro_batches);
  const auto input_pieces = split(inputs, rows);
  const auto target_pieces = split(targets, rows);
  const auto weights = loss_weights(loss, target_pieces, rows);
  Reference reference(layers, loss, options);
  std::vector<at::Tensor> losses;
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (size_t m = 0; m < rows.size(); ++m) {
    losses.push_back(reference.forward(static_cast<int>(m), input_pieces[m], target_pieces[m]));
    if (weights[m] != 0)
      sum.add_(losses[m].detach().reshape({}).to(at::kDouble), weights[m]);
  }
  const at::Tensor total = sum.to(losses.front().scalar_type());
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t m = options.last_first ? rows.size() - 1 - i : i;
    reference.backward(static_cast<int>(m), losses[m], weights[m]);
    losses[m] = at::Tensor();
  }
  reference.commit();
  return total;
}

}  // namespace gpipe
