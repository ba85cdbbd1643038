#include "gpipe/core/pipeline.h"

#include <ATen/ATen.h>

#include <cmath>
#include <unordered_set>
#include <utility>

#include "gpipe/base/error.h"
#include "gpipe/core/micro_batch.h"
#include "gpipe/core/pipeline_impl.h"

namespace gpipe {
namespace {

void add_input_gradients(const Values& inputs, const MiniBatch& batch) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!batch.inputs_require_grad[i])
      continue;
    const at::Tensor gradient = merge_input_gradients(batch, i);
    if (!gradient.defined())
      continue;  // the loss does not depend on this input
    at::Tensor& sum = inputs[i].mutable_grad();
    sum = sum.defined() ? sum + gradient : gradient.contiguous();
  }
}

at::Tensor weighted_sum(const std::vector<at::Tensor>& losses, const std::vector<double>& weights) {
  at::Tensor sum = at::zeros({}, losses.front().options().dtype(at::kDouble));
  for (size_t i = 0; i < losses.size(); ++i) {
    if (weights[i] != 0)
      sum.add_(losses[i].reshape({}).to(at::kDouble), weights[i]);
  }
  return sum.to(losses.front().scalar_type());
}

template <class Visit>
void for_each_named(const Layers& layers, const Visit& visit) {
  for (int i = 0; i < layers.size(); ++i) {
    if (layers[i].module())
      visit(layers[i].name(), *layers[i].module());
  }
}

}  // namespace

Pipeline::Pipeline(Layers layers, PipelineOptions options)
    : impl_(std::make_shared<Impl>(std::move(layers), std::move(options))) {}

Pipeline::~Pipeline() = default;
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;

at::Tensor Pipeline::step(
    const Values& inputs, const Values& targets, const Loss& loss, double gradient_scale) {
  GPIPE_CHECK(
      impl_->is_training,
      "[pipeline] step() trains, and the pipeline is in eval mode; call train() first, or "
      "forward()");
  GPIPE_CHECK(
      std::isfinite(gradient_scale),
      "[pipeline] a gradient scale of ",
      gradient_scale,
      "; use a finite number");
  for (const at::Tensor& input : inputs) {
    GPIPE_CHECK(
        !input.defined() || !input.requires_grad() || input.is_leaf(),
        "[pipeline] an input of step() is part of a graph; use forward(), which joins it, or "
        "detach the input");
  }
  const auto rows = split_rows(common_rows(inputs, targets), impl_->options.num_micro_batches);
  ReadySchedule& schedule = impl_->step_schedule(static_cast<int>(rows.size()));
  MiniBatch batch = impl_->make_mini_batch(inputs, rows);
  batch.targets = split(targets, rows);
  batch.loss = &loss;
  batch.loss_weights = loss_weights(loss, batch.targets, rows);
  for (double weight : batch.loss_weights)
    batch.gradient_weights.push_back(weight * gradient_scale);
  batch.observer = impl_->observer;
  impl_->run(*schedule.step, impl_->make_runs(batch, schedule), /*commits=*/true);
  at::NoGradGuard no_grad;
  add_input_gradients(inputs, batch);
  ++impl_->step_count;
  return weighted_sum(batch.losses, batch.loss_weights);
}

void Pipeline::observe(Observer observer) {
  impl_->observer = std::move(observer);
}

std::vector<at::Tensor> Pipeline::parameters() const {
  std::vector<at::Tensor> all;
  for (const auto& stage : impl_->stages) {
    all.insert(all.end(), stage->parameters().begin(), stage->parameters().end());
  }
  return all;
}

std::vector<std::vector<at::Tensor>> Pipeline::parameters_by_stage() const {
  std::vector<std::vector<at::Tensor>> by_stage;
  for (const auto& stage : impl_->stages)
    by_stage.push_back(stage->parameters());
  return by_stage;
}

NamedTensors Pipeline::named_parameters() const {
  NamedTensors named;
  std::unordered_set<const c10::TensorImpl*> seen;
  for_each_named(impl_->layers, [&](const std::string& layer, const torch::nn::Module& module) {
    for (const auto& item : module.named_parameters()) {
      if (seen.insert(item.value().unsafeGetTensorImpl()).second)
        named.emplace_back(layer + "." + item.key(), item.value());
    }
  });
  return named;
}

NamedTensors Pipeline::named_buffers() const {
  NamedTensors named;
  std::unordered_set<const c10::TensorImpl*> seen;
  for_each_named(impl_->layers, [&](const std::string& layer, const torch::nn::Module& module) {
    for (const auto& item : module.named_buffers()) {
      if (item.value().defined() && seen.insert(item.value().unsafeGetTensorImpl()).second)
        named.emplace_back(layer + "." + item.key(), item.value());
    }
  });
  return named;
}

void Pipeline::train(bool on) {
  impl_->is_training = on;
  for (int i = 0; i < impl_->layers.size(); ++i) {
    if (impl_->layers[i].module())
      impl_->layers[i].module()->train(on);
  }
}

bool Pipeline::is_training() const {
  return impl_->is_training;
}

void Pipeline::zero_grad() {
  for (const at::Tensor& parameter : parameters())
    parameter.mutable_grad() = at::Tensor();
}

void Pipeline::for_each_stage(
    const std::function<void(int, const std::vector<at::Tensor>&)>& function) {
  FirstError error;
  impl_->workers->run([&](int worker) {
    try {
      Stage& stage = *impl_->stages[static_cast<size_t>(worker)];
      ChargeTo charge(stage.account());
      function(worker, stage.parameters());
    } catch (...) {
      error.set(std::current_exception());
    }
  });
  error.rethrow();
}

const PipelineOptions& Pipeline::options() const {
  return impl_->options;
}
const Layers& Pipeline::layers() const {
  return impl_->layers;
}
const plan::Timeline& Pipeline::timeline() const {
  return impl_->timeline;
}
int64_t Pipeline::step_count() const {
  return impl_->step_count;
}
void Pipeline::set_step_count(int64_t step) {
  impl_->step_count = step;
}

std::vector<StageInfo> Pipeline::stages() const {
  std::vector<StageInfo> infos;
  for (const auto& stage : impl_->stages) {
    StageInfo info;
    info.first_layer = stage->first_layer();
    info.device = stage->device();
    for (int i = 0; i < stage->layers().size(); ++i)
      info.layers.push_back(stage->layers()[i].name());
    for (const at::Tensor& parameter : stage->parameters())
      info.num_parameters += parameter.numel();
    const AccountBytes used = bytes(stage->account());
    info.live_bytes = used.live;
    info.peak_bytes = used.peak;
    infos.push_back(std::move(info));
  }
  return infos;
}

}  // namespace gpipe
