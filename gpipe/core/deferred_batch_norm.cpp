#include "gpipe/core/deferred_batch_norm.h"

#include <ATen/ATen.h>

#include "gpipe/base/error.h"

namespace gpipe {
namespace {

at::Tensor find_buffer(torch::nn::Module& module, const char* name) {
  const auto buffers = module.named_buffers(/*recurse=*/false);
  const auto* buffer = buffers.find(name);
  return buffer != nullptr ? *buffer : at::Tensor();
}

/// running <- (1 - momentum) * running + momentum * batch, in double.
void move(const at::Tensor& running, const at::Tensor& batch, double momentum) {
  running.copy_(running.to(at::kDouble).mul_(1 - momentum).add_(batch, momentum));
}

}  // namespace

void DeferredBatchNorm::watch(torch::nn::Module& module) {
  for (const auto& sub_module : module.modules()) {
    at::Tensor mean = find_buffer(*sub_module, "running_mean");
    at::Tensor var = find_buffer(*sub_module, "running_var");
    if (!mean.defined() || !var.defined())
      continue;
    if (!index_.emplace(mean.unsafeGetTensorImpl(), norms_.size()).second)
      continue;
    norms_.push_back({mean, var, find_buffer(*sub_module, "num_batches_tracked"), 0, {}, 0, false});
  }
}

void DeferredBatchNorm::read_counters() {
  for (Norm& norm : norms_) {
    norm.num_batches =
        norm.num_batches_tracked.defined() ? norm.num_batches_tracked.item<int64_t>() : 0;
  }
}

void DeferredBatchNorm::begin_micro_batch(bool silent) {
  if (!is_recording_) {
    read_counters();
    is_recording_ = true;
  }
  silent_ = silent;
  for (Norm& norm : norms_)
    norm.next_call = 0;
}

std::optional<OperatorHooks::Statistics> DeferredBatchNorm::scratch(
    const at::Tensor& running_mean) const {
  const auto found = index_.find(running_mean.unsafeGetTensorImpl());
  if (found == index_.end())
    return std::nullopt;
  const Norm& norm = norms_[found->second];
  return OperatorHooks::Statistics{
      at::zeros_like(norm.running_mean), at::zeros_like(norm.running_var)};
}

void DeferredBatchNorm::record(
    const at::Tensor& running_mean,
    const OperatorHooks::Statistics& statistics,
    double momentum,
    int64_t count) {
  Norm& norm = norms_[index_.at(running_mean.unsafeGetTensorImpl())];
  norm.is_used = true;
  if (silent_)
    return;
  at::NoGradGuard no_grad;
  const size_t call = norm.next_call++;
  if (call == norm.calls.size())
    norm.calls.push_back({momentum, 0, {}, {}});
  Moments& total = norm.calls[call];
  const auto n = static_cast<double>(count);
  // Copies, for the operator's backward holds the statistics themselves.
  const at::Tensor mean = statistics.mean.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  const at::Tensor m2 =
      statistics.var.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true).mul_(n - 1);
  if (total.count == 0) {
    total.count = n;
    total.mean = mean;
    total.m2 = m2;
    return;
  }
  const double sum = total.count + n;
  const at::Tensor delta = mean - total.mean;
  total.mean.add_(delta, n / sum);
  total.m2.add_(m2).add_(delta.square(), total.count * n / sum);
  total.count = sum;
}

void DeferredBatchNorm::commit() {
  at::NoGradGuard no_grad;
  for (Norm& norm : norms_) {
    for (const Moments& call : norm.calls) {
      if (call.count == 0)
        continue;
      move(norm.running_mean, call.mean, call.momentum);
      move(norm.running_var, call.m2 / (call.count - 1), call.momentum);
    }
    norm.num_batches += static_cast<int64_t>(norm.calls.size());
  }
  discard();
}

void DeferredBatchNorm::discard() {
  if (!is_recording_)
    return;
  at::NoGradGuard no_grad;
  for (Norm& norm : norms_) {
    if (norm.is_used && norm.num_batches_tracked.defined())
      norm.num_batches_tracked.fill_(norm.num_batches);
    norm.calls.clear();
  }
  is_recording_ = false;
}

}  // namespace gpipe
