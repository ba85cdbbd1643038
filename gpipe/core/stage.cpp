#include "gpipe/core/stage.h"

#include <string>
#include <unordered_set>
#include <utility>

namespace gpipe {

Stage::Stage(int index, int first_layer, Layers layers, c10::Device device)
    : index_(index),
      first_layer_(first_layer),
      layers_(std::move(layers)),
      device_(device),
      account_(make_account("stage " + std::to_string(index))) {
  std::unordered_set<const c10::TensorImpl*> seen;
  for (int i = 0; i < layers_.size(); ++i) {
    const auto& module = layers_[i].module();
    if (!module)
      continue;
    if (!device.is_cpu())
      module->to(device);
    for (const at::Tensor& parameter : module->parameters()) {
      if (seen.insert(parameter.unsafeGetTensorImpl()).second)
        parameters_.push_back(parameter);
    }
    batch_norm_.watch(*module);
    buffers_.watch(*module);
  }
}

}  // namespace gpipe
