#include "gpipe/core/layer_scope.h"

#include <torch/csrc/autograd/function_hook.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "gpipe/core/autograd_nodes.h"

namespace gpipe {
namespace {

thread_local LayerScope* current_scope = nullptr;

/// Tells the thread's scope that the backward of a layer begins.
class EnterLayer : public torch::autograd::FunctionPreHook {
 public:
  explicit EnterLayer(int layer) : layer_(layer) {}

  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& gradients) override {
    if (current_scope != nullptr)
      current_scope->enter_backward(layer_);
    return gradients;
  }

 private:
  int layer_;
};

/// A tensor that a layer returns several times becomes one alias per place, so that the sum of its gradients has one order
/// wherever the network is cut.
void separate(Tensors& outputs) {
  for (size_t i = 1; i < outputs.size(); ++i) {
    const bool is_repeated =
        outputs[i].defined() && outputs[i].requires_grad() &&
        std::any_of(outputs.begin(), outputs.begin() + static_cast<ptrdiff_t>(i), [&](auto& other) {
          return other.is_same(outputs[i]);
        });
    if (is_repeated)
      outputs[i] = outputs[i].alias();
  }
}

}  // namespace

LayerScope::LayerScope(const Options& options)
    : options_(options), previous_(std::exchange(current_scope, this)), interception_(*this) {
  if (options_.batch_norm != nullptr)
    options_.batch_norm->begin_micro_batch(options_.silent);
}

LayerScope::~LayerScope() {
  current_scope = previous_;
}

LayerScope* LayerScope::current() {
  return current_scope;
}

void LayerScope::enter(int index, bool backward) {
  layer_ = index;
  backward_ = backward;
  is_key_taken_ = false;
}

void LayerScope::enter_backward(int index) {
  if (layer_ != index || !backward_)
    enter(index, /*backward=*/true);
}

std::optional<uint64_t> LayerScope::take_random_key() {
  if (is_key_taken_)
    return std::nullopt;
  is_key_taken_ = true;
  const bool loss = layer_ == kLoss;
  const Draw draw = loss ? (backward_ ? Draw::LossBackward : Draw::Loss)
                         : (backward_ ? Draw::Backward : Draw::Forward);
  return draw_key(options_.seed, draw, options_.step, options_.micro_batch, layer_);
}

std::optional<OperatorHooks::Statistics> LayerScope::batch_norm_scratch(
    const at::Tensor& running_mean) {
  if (options_.batch_norm == nullptr)
    return std::nullopt;
  return options_.batch_norm->scratch(running_mean);
}

void LayerScope::batch_norm_done(
    const at::Tensor& running_mean, const Statistics& statistics, double momentum, int64_t count) {
  options_.batch_norm->record(running_mean, statistics, momentum, count);
}

Tensors run_layer(LayerScope& scope, const Layer& layer, int index, const Tensors& inputs) {
  scope.enter(index, /*backward=*/false);
  const auto before = nodes_of(inputs);
  Tensors outputs = layer.forward(inputs);
  separate(outputs);
  mark_backward(index, before, outputs);
  return outputs;
}

std::vector<const torch::autograd::Node*> nodes_of(const Tensors& tensors) {
  std::vector<const torch::autograd::Node*> nodes;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.grad_fn())
      nodes.push_back(&*tensor.grad_fn());
  }
  return nodes;
}

void mark_backward(
    int index, const std::vector<const torch::autograd::Node*>& before, const Tensors& outputs) {
  for (const at::Tensor& output : outputs) {
    if (!output.defined() || !output.grad_fn())
      continue;
    const auto& node = output.grad_fn();
    if (std::find(before.begin(), before.end(), &*node) == before.end())
      node->add_pre_hook(std::make_unique<EnterLayer>(index));
  }
}

}  // namespace gpipe
