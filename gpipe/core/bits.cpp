#include "gpipe/core/bits.h"

#include <ATen/ATen.h>

#include <cstring>

namespace gpipe {

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined())
    return a.defined() == b.defined();
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type())
    return false;
  const auto plain = [](const at::Tensor& tensor) {
    return (tensor.layout() == at::kStrided ? tensor : tensor.to_dense())
        .detach()
        .to(at::kCPU)
        .contiguous();
  };
  const at::Tensor x = plain(a);
  const at::Tensor y = plain(b);
  return x.nbytes() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

}  // namespace gpipe
