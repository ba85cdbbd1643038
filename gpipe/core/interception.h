#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>
#include <optional>

namespace gpipe {

/// What happens to operators that modules call on a thread while an Interception is installed there: the means by which
/// randomness is keyed and BatchNorm deferred for unmodified modules. Used by one thread.
class OperatorHooks {
 public:
  virtual ~OperatorHooks() = default;

  /// The key that the next random draw is to start from, if the generator was not yet set since the position changed;
  /// nullopt to go on drawing.
  virtual std::optional<uint64_t> take_random_key() { return std::nullopt; }

  /// Called for aten::batch_norm that would update running statistics. Returns scratch statistics to be filled with
  /// momentum 1 instead; they are handed to batch_norm_done(). nullopt leaves the operator as it is.
  struct Statistics {
    at::Tensor mean;
    at::Tensor var;
  };
  virtual std::optional<Statistics> batch_norm_scratch(const at::Tensor& /*running_mean*/) {
    return std::nullopt;
  }
  virtual void batch_norm_done(
      const at::Tensor& /*running_mean*/,
      const Statistics& /*statistics*/,
      double /*momentum*/,
      int64_t /*count*/) {}

  /// Whether tensors that are made without a device, and hold `num_elements`, go to the meta device.
  virtual bool makes_meta(int64_t /*num_elements*/) { return false; }
};

/// Sends the operators called on this thread through `hooks` while it lives. Nests: the inner one counts. On first use
/// in the process a canary runs a dropout and a BatchNorm, and Error is thrown if this LibTorch does not intercept them.
class Interception {
 public:
  explicit Interception(OperatorHooks& hooks);
  ~Interception();
  Interception(const Interception&) = delete;
  Interception& operator=(const Interception&) = delete;

 private:
  OperatorHooks* previous_;
  c10::impl::IncludeDispatchKeyGuard guard_;
};

}  // namespace gpipe
