#pragma once

#include <ATen/core/Tensor.h>

namespace gpipe {

/// Whether two tensors have the same type, shape and bits: -0 is not 0, and a NaN is equal to itself. Undefined ones are
/// equal to each other. Sparse tensors are compared as dense ones.
bool same_bits(const at::Tensor& a, const at::Tensor& b);

}  // namespace gpipe
