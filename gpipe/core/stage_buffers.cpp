#include "gpipe/core/stage_buffers.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace gpipe {

void StageBuffers::watch(const torch::nn::Module& module) {
  for (const at::Tensor& tensor : module.buffers()) {
    const bool is_known = std::any_of(buffers_.begin(), buffers_.end(), [&](const Buffer& buffer) {
      return buffer.tensor.is_same(tensor);
    });
    if (tensor.defined() && !is_known)
      buffers_.emplace_back().tensor = tensor;
  }
}

void StageBuffers::begin() {
  for (Buffer& buffer : buffers_) {
    buffer.version = buffer.tensor._version();
    if (is_first_ || buffer.changes)
      buffer.before = buffer.tensor.detach().clone();
  }
}

void StageBuffers::end() {
  for (Buffer& buffer : buffers_) {
    buffer.changes = buffer.changes || buffer.has_moved();
    buffer.before = at::Tensor();
    buffer.before_recompute = at::Tensor();
  }
  is_first_ = false;
}

void StageBuffers::restore() {
  at::NoGradGuard no_grad;
  for (Buffer& buffer : buffers_) {
    if (buffer.has_moved() && buffer.before.defined())
      buffer.tensor.copy_(buffer.before);
  }
  end();
}

void StageBuffers::begin_recompute() {
  for (Buffer& buffer : buffers_) {
    buffer.changes = buffer.changes || buffer.has_moved();
    if (!buffer.changes)
      continue;
    buffer.recompute_version = buffer.tensor._version();
    buffer.before_recompute = buffer.tensor.detach().clone();
  }
}

void StageBuffers::end_recompute() {
  at::NoGradGuard no_grad;
  for (Buffer& buffer : buffers_) {
    if (!buffer.before_recompute.defined())
      continue;
    if (buffer.tensor._version() != buffer.recompute_version)
      buffer.tensor.copy_(buffer.before_recompute);
    buffer.before_recompute = at::Tensor();
  }
}

}  // namespace gpipe
