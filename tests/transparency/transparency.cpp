#include "tests/transparency/transparency.h"

#include <torch/optim/adamw.h>

#include <sstream>

#include "gpipe/core/bits.h"
#include "gpipe/core/intra_op_threads.h"
#include "gpipe/core/pipeline_optimizer.h"
#include "gpipe/core/reference.h"

namespace gpipe::testing {
namespace {

constexpr uint64_t kSeed = 7;

torch::optim::AdamWOptions optimizer_options() {
  return torch::optim::AdamWOptions(1e-2).weight_decay(0.1);
}

void convert(Layers& layers, c10::ScalarType dtype) {
  layers.build(kSeed);
  for (int i = 0; i < layers.size(); ++i) {
    if (layers[i].module())
      layers[i].module()->to(dtype);
  }
}

void add(Outcome& outcome, const std::string& name, const at::Tensor& tensor) {
  outcome.emplace_back(name, tensor.defined() ? tensor.detach().clone() : at::Tensor());
}

/// Names by layer and module path, so that shared modules appear at each use.
void add_state(Outcome& outcome, const Layers& layers) {
  for (int i = 0; i < layers.size(); ++i) {
    if (!layers[i].module())
      continue;
    for (const auto& item : layers[i].module()->named_parameters()) {
      add(outcome, "weight " + layers[i].name() + "." + item.key(), item.value());
      add(outcome, "gradient " + layers[i].name() + "." + item.key(), item.value().grad());
    }
    for (const auto& item : layers[i].module()->named_buffers()) {
      add(outcome, "buffer " + layers[i].name() + "." + item.key(), item.value());
    }
  }
}

/// AdamW's state of each parameter, by name: from one optimizer, or from those of all stages.
void add_optimizer_state(
    Outcome& outcome,
    const Layers& layers,
    const std::vector<const torch::optim::Optimizer*>& optimizers) {
  for (int i = 0; i < layers.size(); ++i) {
    if (!layers[i].module())
      continue;
    for (const auto& item : layers[i].module()->named_parameters()) {
      for (const auto* optimizer : optimizers) {
        const auto found = optimizer->state().find(item.value().unsafeGetTensorImpl());
        if (found == optimizer->state().end())
          continue;
        const auto& state = static_cast<const torch::optim::AdamWParamState&>(*found->second);
        const std::string name = layers[i].name() + "." + item.key();
        add(outcome, "average " + name, state.exp_avg());
        add(outcome, "square average " + name, state.exp_avg_sq());
        add(outcome, "steps " + name, at::scalar_tensor(state.step(), at::kLong));
      }
    }
  }
}

/// All that can be on the first stage, one layer on each other: far from the default cut.
std::vector<int> far_cut(int num_layers, int num_stages) {
  std::vector<int> cut(static_cast<size_t>(num_stages), 1);
  cut.front() = num_layers - num_stages + 1;
  return cut;
}

}  // namespace

Outcome train_pipelined(const Network& network, const Training& training) {
  Layers layers = network.make_layers();
  convert(layers, training.dtype);
  Pipeline pipeline(
      layers,
      {.num_stages = training.num_stages,
       .num_micro_batches = training.num_micro_batches,
       .schedule = std::string(training.schedule),
       .rematerialize = training.rematerialize,
       .cut =
           training.has_far_cut ? far_cut(layers.size(), training.num_stages) : std::vector<int>(),
       .num_threads = training.num_threads,
       .seed = kSeed,
       .autocast = training.autocast});
  std::vector<const torch::optim::Optimizer*> optimizers;
  PipelineOptimizer optimizer(pipeline, [&](std::vector<at::Tensor> parameters) {
    auto made = std::make_unique<torch::optim::AdamW>(std::move(parameters), optimizer_options());
    optimizers.push_back(made.get());
    return made;
  });
  Outcome outcome;
  for (size_t step = 0; step < network.rows.size(); ++step) {
    const auto [inputs, targets] =
        network.make_batch(static_cast<int>(step), network.rows[step], training.dtype);
    optimizer.zero_grad();
    add(outcome,
        "loss " + std::to_string(step),
        pipeline.step(inputs, targets, network.make_loss()));
    pipeline.clip_grad_norm(1.0);
    optimizer.step();
  }
  add_state(outcome, layers);
  add_optimizer_state(outcome, layers, optimizers);
  return outcome;
}

Outcome train_reference(const Network& network, const Training& training) {
  IntraOpThreads threads(training.num_threads);
  Layers layers = network.make_layers();
  convert(layers, training.dtype);
  std::vector<at::Tensor> parameters;
  for (int i = 0; i < layers.size(); ++i) {
    if (!layers[i].module())
      continue;
    for (const auto& parameter : layers[i].module()->parameters()) {
      if (parameter.requires_grad())
        parameters.push_back(parameter);
    }
  }
  torch::optim::AdamW optimizer(parameters, optimizer_options());
  Pipeline clipper(layers, {.num_threads = training.num_threads});  // K=1; used for its norm alone
  Outcome outcome;
  for (size_t step = 0; step < network.rows.size(); ++step) {
    const auto [inputs, targets] =
        network.make_batch(static_cast<int>(step), network.rows[step], training.dtype);
    for (auto& parameter : parameters)
      parameter.mutable_grad() = at::Tensor();
    const ReferenceOptions options{
        .num_micro_batches = training.num_micro_batches,
        .last_first = training.schedule == "gpipe",
        .seed = kSeed,
        .step = static_cast<int64_t>(step),
        .autocast = training.autocast};
    add(outcome,
        "loss " + std::to_string(step),
        reference_step(layers, inputs, targets, network.make_loss(), options));
    clipper.clip_grad_norm(1.0);
    optimizer.step();
  }
  add_state(outcome, layers);
  add_optimizer_state(outcome, layers, {&optimizer});
  return outcome;
}

std::string first_difference(const Outcome& actual, const Outcome& expected) {
  std::ostringstream text;
  if (actual.size() != expected.size()) {
    text << actual.size() << " values, expected " << expected.size();
    return text.str();
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    const auto& [name, value] = actual[i];
    if (name != expected[i].first)
      return name + " where " + expected[i].first + " is expected";
    if (same_bits(value, expected[i].second))
      continue;
    text << name << " differs";
    if (value.defined() && expected[i].second.defined() &&
        value.sizes() == expected[i].second.sizes()) {
      text << " by at most "
           << (value.to(at::kDouble) - expected[i].second.to(at::kDouble))
                  .abs()
                  .max()
                  .item<double>();
    }
    return text.str();
  }
  return "";
}

}  // namespace gpipe::testing
