#include "gpipe/core/training_state.h"

#include <ATen/ATen.h>

namespace gpipe {

TrainingState::TrainingState(const Layers& layers) {
  for (int i = 0; i < layers.size(); ++i) {
    const auto& module = layers[i].module();
    if (!module)
      continue;
    for (const auto& part : module->modules())
      modes_.push_back({part, part->is_training()});
    for (const at::Tensor& buffer : module->buffers())
      buffers_.push_back({buffer, buffer.detach().clone()});
    for (const at::Tensor& parameter : module->parameters()) {
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
