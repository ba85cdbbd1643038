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
    const void* memory = buffer.tensor.has_storage() ? buffer.tensor.const_data_ptr() : nullptr;
    if (buffer.before.defined() && !buffer.has_moved() && buffer.memory == memory)
      continue;
    buffer.memory = memory;
    buffer.version = buffer.tensor._version();
    buffer.before = buffer.tensor.detach().clone();
  }
}

void StageBuffers::end() {
  for (Buffer& buffer : buffers_) {
    if (buffer.has_moved())
      buffer.before = at::Tensor();
    buffer.before_recompute = at::Tensor();
  }
}

void StageBuffers::restore() {
  at::NoGradGuard no_grad;
  for (Buffer& buffer : buffers_) {
    if (buffer.has_moved())
      buffer.tensor.copy_(buffer.before);
  }
  end();
}

void StageBuffers::begin_recompute() {
  for (Buffer& buffer : buffers_) {
    buffer.recompute_version = buffer.tensor._version();
    buffer.before_recompute = buffer.has_moved() ? buffer.tensor.detach().clone() : buffer.before;
  }
}

void StageBuffers::end_recompute() {
  at::NoGradGuard no_grad;
  for (Buffer& buffer : buffers_) {
    if (buffer.tensor._version() != buffer.recompute_version)
      buffer.tensor.copy_(buffer.before_recompute);
    buffer.before_recompute = at::Tensor();
  }
}

}  // namespace gpipe
