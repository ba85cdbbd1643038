#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

namespace gpipe {

/// Keeps the buffers of a stage's modules as the mini-batch's forwards leave them: a recompute must not move a counter or
/// a statistic of a user's own module, and after an error every buffer is as it was before. BatchNorm's are not
/// deferred here (deferred_batch_norm.h). One thread.
class StageBuffers {
 public:
  void watch(const torch::nn::Module& module);

  /// Before the first micro-batch: remembers all buffers. Only those that have moved since are copied again.
  void begin();
  /// After the mini-batch.
  void end();
  /// After an error: puts all back as they were at begin().
  void restore();

  /// Before and after a recompute.
  void begin_recompute();
  void end_recompute();

 private:
  struct Buffer {
    at::Tensor tensor;
    const void* memory = nullptr;  // at begin()
    int64_t version = 0;           // at begin()
    at::Tensor before;             // value at begin()
    int64_t recompute_version = 0;
    at::Tensor before_recompute;

    bool has_moved() const { return tensor._version() != version; }
  };
  std::vector<Buffer> buffers_;
};

}  // namespace gpipe
