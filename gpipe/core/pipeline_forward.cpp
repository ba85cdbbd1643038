#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "gpipe/base/error.h"
#include "gpipe/core/autograd_nodes.h"
#include "gpipe/core/micro_batch.h"
#include "gpipe/core/pipeline_impl.h"
#include "gpipe/core/random_key.h"

namespace gpipe {
namespace {

/// Bits of up to 16 places of a parameter, mixed.
uint64_t sample(const at::Tensor& parameter) {
  if (!parameter.device().is_cpu() || parameter.numel() == 0)
    return 0;
  constexpr size_t kPlaces = 16;
  const auto* bytes = static_cast<const char*>(parameter.const_data_ptr());
  const auto num_elements = static_cast<size_t>(parameter.numel());
  const size_t size = std::min<size_t>(parameter.element_size(), sizeof(uint64_t));
  uint64_t key = 0;
  for (size_t place = 0; place < kPlaces && parameter.is_contiguous(); ++place) {
    uint64_t bits = 0;
    const size_t element = place * (num_elements - 1) / (kPlaces - 1);
    std::memcpy(&bits, bytes + element * parameter.element_size(), size);
    key = mix(key, bits);
  }
  return key;
}

/// Tells whether parameters were changed: by their versions and, since torch::optim's optimizers write past these, by
/// samples of their values (on CPUs: a GPU would have to be waited for).
uint64_t fingerprint_of(const std::vector<std::unique_ptr<Stage>>& stages) {
  uint64_t key = 0;
  for (const auto& stage : stages) {
    for (const at::Tensor& parameter : stage->parameters()) {
      key = mix(key, static_cast<uint64_t>(parameter._version()));
      key = mix(key, sample(parameter));
    }
  }
  return key;
}

}  // namespace

/// The pipeline as one node of the caller's graph: its backward runs the second half of fill-drain. Parameters get their
/// gradients in `.grad`, not through the caller's graph.
struct PipelineNode : detail::Node {
  std::weak_ptr<Pipeline::Impl> pipeline;
  std::vector<int64_t> rows;
  MiniBatch batch;
  ReadySchedule* schedule = nullptr;
  std::vector<std::unique_ptr<StageRun>> runs;
  std::vector<size_t> differentiable;  // output index of each slot
  size_t num_outputs = 0;
  uint64_t parameters = 0;  // their fingerprint

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const auto impl = pipeline.lock();
    GPIPE_CHECK(
        impl != nullptr,
        "[pipeline] backward() after the pipeline was destroyed; keep it until then");
    GPIPE_CHECK(
        !runs.empty(),
        "[pipeline] backward() a second time through the same forward(); retain_graph is not "
        "supported, call "
        "forward() again");
    GPIPE_CHECK(
        !at::GradMode::is_enabled(),
        "[pipeline] create_graph (a gradient of gradients) is not supported through forward(); "
        "use the layers without a pipeline for it");
    GPIPE_CHECK(
        parameters == fingerprint_of(impl->stages),
        "[pipeline] parameters were changed between forward() and backward(); call "
        "optimizer.step() after backward()");
    give_output_gradients(gradients);
    const auto used_runs = std::exchange(runs, {});
    impl->run(*schedule->backward_half, used_runs, /*commits=*/false);
    return input_gradients();
  }

  void release_variables() override {
    runs.clear();
    batch = {};
  }

 private:
  void give_output_gradients(const torch::autograd::variable_list& gradients) {
    Tensors by_output(num_outputs);
    for (size_t slot = 0; slot < differentiable.size(); ++slot)
      by_output[differentiable[slot]] = gradients[slot];
    batch.output_gradients = split(by_output, rows);
  }

  torch::autograd::variable_list input_gradients() {
    torch::autograd::variable_list result;
    for (size_t i = 0; i < batch.inputs_require_grad.size(); ++i) {
      if (batch.inputs_require_grad[i])
        result.push_back(merge_input_gradients(batch, i));
    }
    return result;
  }
};

namespace {

bool wants_graph(const Pipeline::Impl& impl, const MiniBatch& batch) {
  if (!at::GradMode::is_enabled())
    return false;
  for (bool requires_grad : batch.inputs_require_grad) {
    if (requires_grad)
      return true;
  }
  for (const auto& stage : impl.stages) {
    for (const at::Tensor& parameter : stage->parameters()) {
      if (parameter.requires_grad())
        return true;
    }
  }
  return false;
}

/// Makes the outputs that have a gradient part of the caller's graph.
void join_graph(
    const detail::NodePtr& node_pointer,
    PipelineNode& node,
    const Values& inputs,
    Tensors& outputs) {
  torch::autograd::edge_list edges;
  for (const at::Tensor& input : inputs) {
    if (input.defined() && input.requires_grad())
      edges.push_back(torch::autograd::impl::gradient_edge(input));
  }
  node.set_next_edges(std::move(edges));
  node.num_outputs = outputs.size();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !node.batch.outputs_require_grad[i])
      continue;
    outputs[i] = outputs[i].variable_data();
    const auto slot = node_pointer->add_input_metadata(outputs[i]);
    torch::autograd::impl::set_gradient_edge(outputs[i], {node_pointer, slot});
    node.differentiable.push_back(i);
  }
}

}  // namespace

Tensors Pipeline::forward_all(const Values& inputs) {
  const auto node_pointer = detail::make_node<PipelineNode>();
  auto& node = static_cast<PipelineNode&>(*node_pointer);
  node.pipeline = impl_;
  node.rows = split_rows(common_rows(inputs, {}), impl_->options.num_micro_batches);
  node.schedule = &impl_->half_schedule(static_cast<int>(node.rows.size()));
  node.batch = impl_->make_mini_batch(inputs, node.rows);
  node.batch.keeps_graphs = wants_graph(*impl_, node.batch);
  node.runs = impl_->make_runs(node.batch, *node.schedule);
  impl_->run(*node.schedule->forward_half, node.runs, /*commits=*/true);
  if (impl_->is_training)
    ++impl_->step_count;
  node.parameters = fingerprint_of(impl_->stages);
  at::NoGradGuard no_grad;
  Tensors outputs = merge(node.batch.outputs);
  node.batch.outputs.clear();
  if (node.batch.keeps_graphs)
    join_graph(node_pointer, node, inputs, outputs);
  return outputs;
}

at::Tensor Pipeline::forward(const Values& inputs) {
  Tensors outputs = forward_all(inputs);
  GPIPE_CHECK(
      outputs.size() == 1,
      "[pipeline] the network returns ",
      outputs.size(),
      " tensors; use forward_all() to get them");
  return outputs.front();
}

}  // namespace gpipe
