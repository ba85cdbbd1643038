#include "app/diagnosis.h"

#include <ATen/ATen.h>
#include <torch/types.h>

#include <algorithm>
#include <vector>

#include "gpipe/base/error.h"

namespace gpipe::app {
namespace {

bool all_finite(const Tensors& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
    return !tensor.defined() || !tensor.is_floating_point() ||
           at::isfinite(tensor).all().item<bool>();
  });
}

/// The rows of one of the pieces that a pipeline makes: they differ by at most one row.
Tensors piece(const Tensors& tensors, int64_t index, int64_t pieces) {
  Tensors rows;
  for (const auto& tensor : tensors)
    rows.push_back(tensor.tensor_split(pieces)[static_cast<size_t>(index)]);
  return rows;
}

int stage_of(const std::vector<StageInfo>& stages, int layer) {
  int stage = 0;
  while (stage + 1 < static_cast<int>(stages.size()) &&
         stages[static_cast<size_t>(stage) + 1].first_layer <= layer)
    ++stage;
  return stage;
}

/// The first layer whose output is not finite; -1 for none.
int first_bad_layer(const Pipeline& pipeline, Tensors value) {
  const auto stages = pipeline.stages();
  for (int layer = 0; layer < pipeline.layers().size(); ++layer) {
    const c10::Device device = stages[static_cast<size_t>(stage_of(stages, layer))].device;
    for (auto& tensor : value)
      if (tensor.defined())
        tensor = tensor.to(device);
    value = pipeline.layers()[layer].forward(value);
    if (!all_finite(value))
      return layer;
  }
  return -1;
}

}  // namespace

std::string find_non_finite(const Pipeline& pipeline, const Tensors& inputs) {
  const torch::NoGradGuard no_grad;
  const int64_t rows = inputs.front().size(0);
  const int64_t pieces = std::min<int64_t>(pipeline.options().num_micro_batches, rows);
  for (int64_t m = 0; m < pieces; ++m) {
    const Tensors micro_batch = piece(inputs, m, pieces);
    if (!all_finite(micro_batch))
      return detail::concatenate("the inputs of micro-batch ", m, " are not finite");
    const int layer = first_bad_layer(pipeline, micro_batch);
    if (layer >= 0)
      return detail::concatenate(
          "the output of layer `",
          pipeline.layers()[layer].name(),
          "` (stage ",
          stage_of(pipeline.stages(), layer),
          ") for micro-batch ",
          m,
          " is the first that is not");
  }
  return "all outputs of the network are finite, so it arose in the loss";
}

}  // namespace gpipe::app
