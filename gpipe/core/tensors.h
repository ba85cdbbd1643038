#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <vector>

namespace gpipe {

/// The value that passes between layers: one tensor or several, of any dtype; a tensor may be
/// undefined.
using Tensors = std::vector<at::Tensor>;

/// An argument that takes one tensor, or several: `step(x, y, loss)`, `step({ids, mask}, y, loss)`.
class Values : public Tensors {
 public:
  Values(const at::Tensor& tensor) : Tensors{tensor} {}  // NOLINT(google-explicit-constructor)
  Values(const Tensors& tensors) : Tensors(tensors) {}   // NOLINT(google-explicit-constructor)
  Values(std::initializer_list<at::Tensor> tensors) : Tensors(tensors) {}
};

}  // namespace gpipe
