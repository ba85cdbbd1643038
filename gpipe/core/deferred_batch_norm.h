#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gpipe/core/interception.h"

namespace gpipe {

/// Running statistics of the BatchNorm modules of a stage, updated once per mini-batch (paper, section 2.1: moving
/// averages are tracked over the whole mini-batch), for unmodified torch::nn::BatchNorm*.
///
/// Each micro-batch normalises with its own statistics. (n, mean, M2) of the micro-batches are merged in double by Chan's
/// rule, in order, and commit() moves the running mean and the unbiased running variance by the module's momentum; the
/// number of batches grows by one. A module that is called several times in a forward is updated once per call, as it
/// would be for the whole mini-batch. A recompute leaves no trace. Buffers are known by identity, so other operators that
/// pass temporaries (InstanceNorm) are left alone. One thread.
class DeferredBatchNorm {
 public:
  /// Finds the buffers `running_mean`, `running_var`, `num_batches_tracked` of all sub-modules.
  void watch(torch::nn::Module& module);

  /// Called before each run of a micro-batch through the stage. A silent run (a recompute, a profile) records nothing.
  void begin_micro_batch(bool silent);

  std::optional<OperatorHooks::Statistics> scratch(const at::Tensor& running_mean) const;
  void record(
      const at::Tensor& running_mean,
      const OperatorHooks::Statistics& statistics,
      double momentum,
      int64_t count);

  /// Updates the running statistics, in the order of the first calls, and forgets what was recorded.
  void commit();

  /// Forgets what was recorded, and sets the batch counters back, which modules advance by themselves.
  void discard();

 private:
  struct Moments {
    double momentum = 0;
    double count = 0;
    at::Tensor mean;  // double, [features]
    at::Tensor m2;    // double, [features]
  };
  struct Norm {
    at::Tensor running_mean;
    at::Tensor running_var;
    at::Tensor num_batches_tracked;  // undefined where the module has none
    int64_t num_batches = 0;         // before the mini-batch
    std::vector<Moments> calls;      // by the call's place within a micro-batch
    size_t next_call = 0;
    bool is_used =
        false;  // by aten::batch_norm; others that name their buffers so count for themselves
  };

  void read_counters();

  std::vector<Norm> norms_;
  std::unordered_map<const c10::TensorImpl*, size_t> index_;
  bool silent_ = false;
  bool is_recording_ = false;
};

}  // namespace gpipe
