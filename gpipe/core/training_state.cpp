#include "gpipe/core/training_state.h"

#include <ATen/ATen.h>

#include <unordered_set>

namespace gpipe {

TrainingState::TrainingState(const Layers& layers) {
  std::unordered_set<const c10::TensorImpl*> seen;
  for (int i = 0; i < layers.size(); ++i) {
    const auto& module = layers[i].module();
    if (!module)
      continue;
    for (const auto& part : module->modules())
      modes_.push_back({part, part->is_training()});
    for (const at::Tensor& buffer : module->buffers()) {
      if (buffer.defined() && seen.insert(buffer.unsafeGetTensorImpl()).second)
        buffers_.push_back({buffer, buffer.detach().clone()});
    }
    for (const at::Tensor& parameter : module->parameters()) {
      if (!seen.insert(parameter.unsafeGetTensorImpl()).second)
        continue;
      gradients_.push_back({parameter, parameter.grad()});
      parameter.mutable_grad() = at::Tensor();
    }
  }
}

TrainingState::~TrainingState() {
  reset();
  for (const Pair& gradient : gradients_)
    gradient.tensor.mutable_grad() = gradient.value;
  for (const Mode& mode : modes_) {
    if (mode.module->is_training() != mode.is_training)
      mode.module->train(mode.is_training);
  }
}

void TrainingState::reset() {
  at::NoGradGuard no_grad;
  for (const Pair& buffer : buffers_)
    buffer.tensor.copy_(buffer.value);
  for (const Pair& gradient : gradients_)
    gradient.tensor.mutable_grad() = at::Tensor();
}

}  // namespace gpipe
