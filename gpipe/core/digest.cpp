#include "gpipe/core/digest.h"

#include <ATen/ATen.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace gpipe {
namespace {

void add(XXH3_state_t& state, const void* data, size_t num_bytes) {
  XXH3_128bits_update(&state, data, num_bytes);
}

void add(XXH3_state_t& state, const std::string& text) {
  const uint64_t length = text.size();
  add(state, &length, sizeof length);
  add(state, text.data(), text.size());
}

void add(XXH3_state_t& state, const at::Tensor& tensor) {
  add(state, std::string(c10::toString(tensor.scalar_type())));
  const int64_t dim = tensor.dim();
  add(state, &dim, sizeof dim);
  add(state, tensor.sizes().data(), tensor.sizes().size() * sizeof(int64_t));
  const at::Tensor plain = tensor.detach().to(at::kCPU).contiguous();
  add(state, plain.const_data_ptr(), plain.nbytes());
}

}  // namespace

std::string digest(const NamedTensors& tensors) {
  NamedTensors sorted = tensors;
  std::sort(
      sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (const auto& [name, tensor] : sorted) {
    add(state, name);
    add(state, tensor);
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  char text[33];
  std::snprintf(
      text,
      sizeof text,
      "%016llx%016llx",
      static_cast<unsigned long long>(hash.high64),
      static_cast<unsigned long long>(hash.low64));
  return text;
}

std::string digest(const Pipeline& pipeline) {
  NamedTensors all = pipeline.named_parameters();
  for (auto& buffer : pipeline.named_buffers())
    all.push_back(buffer);
  return digest(all);
}

}  // namespace gpipe
