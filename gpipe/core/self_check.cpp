#include "gpipe/core/self_check.h"

#include <ATen/ATen.h>

#include <map>
#include <utility>

#include "gpipe/core/bits.h"
#include "gpipe/core/boundary.h"
#include "gpipe/core/intra_op_threads.h"
#include "gpipe/core/layer_scope.h"
#include "gpipe/core/micro_batch.h"
#include "gpipe/core/reference.h"
#include "gpipe/core/training_state.h"

namespace gpipe {
namespace {

using gpipe::same_bits;

bool same_bits(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size())
    return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i]))
      return false;
  }
  return true;
}

Tensors copies_of(const Tensors& tensors) {
  Tensors copies;
  for (const at::Tensor& tensor : tensors)
    copies.push_back(tensor.defined() ? tensor.detach().clone() : at::Tensor());
  return copies;
}

/// Aliases of the inputs with no gradients yet.
Tensors leaves_of(const Tensors& inputs) {
  Tensors leaves;
  for (const at::Tensor& input : inputs) {
    leaves.push_back(
        input.defined() ? input.detach().set_requires_grad(input.requires_grad()) : at::Tensor());
  }
  return leaves;
}

/// Runs layer by layer, each twice under the same key, as a forward and as its recompute.
SelfCheckReport check_recompute(
    const Layers& layers, const PipelineOptions& options, const Tensors& inputs) {
  SelfCheckReport report;
  DeferredBatchNorm batch_norm;
  for (int i = 0; i < layers.size(); ++i) {
    if (layers[i].module())
      batch_norm.watch(*layers[i].module());
  }
  LayerScope scope({.seed = options.seed, .silent = true, .batch_norm = &batch_norm});
  Tensors values = inputs;
  for (int i = 0; i < layers.size() && report.ok; ++i) {
    const Tensors first = copies_of(run_layer(scope, layers[i], i, copies_of(values)));
    const Tensors second = copies_of(run_layer(scope, layers[i], i, copies_of(values)));
    if (!same_bits(first, second))
      report = {false, i, layers[i].name(), "recompute"};
    values = first;
  }
  batch_norm.discard();
  return report;
}

/// Gradients and buffers by layer, after a step.
struct Outcome {
  at::Tensor loss;
  std::vector<std::map<std::string, at::Tensor>> layers;
};

Outcome outcome_of(const Layers& layers, at::Tensor loss) {
  Outcome outcome{std::move(loss), {}};
  for (int i = 0; i < layers.size(); ++i) {
    auto& values = outcome.layers.emplace_back();
    if (!layers[i].module())
      continue;
    for (const auto& item : layers[i].module()->named_parameters()) {
      const at::Tensor& gradient = item.value().grad();
      values["gradient of " + item.key()] = gradient.defined() ? gradient.clone() : at::Tensor();
    }
    for (const auto& item : layers[i].module()->named_buffers()) {
      if (item.value().defined())
        values["buffer " + item.key()] = item.value().clone();
    }
  }
  return outcome;
}

SelfCheckReport compare(const Layers& layers, const Outcome& pipelined, const Outcome& plain) {
  // Gradients go backwards: the last layer that differs is where a difference begins.
  for (int i = layers.size() - 1; i >= 0; --i) {
    const auto& expected = plain.layers[static_cast<size_t>(i)];
    for (const auto& [what, value] : pipelined.layers[static_cast<size_t>(i)]) {
      if (!same_bits(value, expected.at(what)))
        return {false, i, layers[i].name(), what};
    }
  }
  if (!same_bits(pipelined.loss, plain.loss))
    return {false, -1, "", "loss"};
  return {};
}

}  // namespace

std::string SelfCheckReport::to_string() const {
  if (ok)
    return "the pipelined step has the same bits as the plain one";
  const std::string where =
      layer < 0 ? "" : "layer '" + layer_name + "' (index " + std::to_string(layer) + "): ";
  return where + difference + " differs" +
         (difference == "recompute"
              ? "; the layer depends on more than its inputs, parameters and random key"
              : " between the pipelined step and the plain one");
}

SelfCheckReport self_check(
    Layers layers,
    PipelineOptions options,
    const Values& given_inputs,
    const Values& targets,
    const Loss& loss) {
  layers.build(options.seed);
  const Values inputs = leaves_of(given_inputs);
  TrainingState state(layers);
  IntraOpThreads threads(options.num_threads);
  const auto rows = split_rows(common_rows(inputs, targets), options.num_micro_batches);
  SelfCheckReport report = check_recompute(layers, options, split(inputs, rows).front());
  if (report.ok) {
    state.reset();
    const ReferenceOptions reference{
        .num_micro_batches = options.num_micro_batches,
        .last_first = options.schedule == "gpipe",
        .seed = options.seed,
        .autocast = options.autocast};
    const Outcome plain =
        outcome_of(layers, reference_step(layers, inputs, targets, loss, reference));
    state.reset();
    Pipeline pipeline(layers, options);
    const Outcome pipelined = outcome_of(layers, pipeline.step(inputs, targets, loss));
    report = compare(layers, pipelined, plain);
  }
  return report;
}

}  // namespace gpipe
