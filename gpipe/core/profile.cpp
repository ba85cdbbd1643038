#include "gpipe/core/profile.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "gpipe/base/error.h"
#include "gpipe/core/allocator.h"
#include "gpipe/core/autocast_scope.h"
#include "gpipe/core/boundary.h"
#include "gpipe/core/intra_op_threads.h"
#include "gpipe/core/layer_scope.h"
#include "gpipe/core/training_state.h"

namespace gpipe {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int64_t bytes_of(const Tensors& tensors) {
  int64_t sum = 0;
  for (const at::Tensor& tensor : tensors)
    sum += tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
  return sum;
}

struct Measurement {
  double forward_seconds = 0;
  double backward_seconds = 0;
  int64_t kept_bytes = 0;
  Message output;
};

/// Gradients of the layer's inputs and parameters, from gradients of one for its outputs; `.grad` is dropped afterwards.
double run_backward(const Tensors& outputs) {
  torch::autograd::edge_list roots;
  torch::autograd::variable_list gradients;
  for (const at::Tensor& output : outputs) {
    if (!output.defined() || !output.requires_grad())
      continue;
    roots.push_back(torch::autograd::impl::gradient_edge(output));
    gradients.push_back(at::ones_like(output));
  }
  if (roots.empty())
    return 0;
  const auto start = Clock::now();
  torch::autograd::Engine::get_default_engine().execute(roots, gradients, false, false, true);
  return seconds_since(start);
}

/// Runs single layers in a scope that leaves no trace.
class Profiler {
 public:
  Profiler(const Layers& layers, const ProfileOptions& options) : options_(options) {
    for (int i = 0; i < layers.size(); ++i) {
      if (layers[i].module())
        batch_norm_.watch(*layers[i].module());
    }
  }
  ~Profiler() { batch_norm_.discard(); }
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Medians of the repeats, after one run that is not counted.
  Measurement measure(const Layer& layer, int index, const Message& input) {
    Measurement result = run(layer, index, input);
    std::vector<double> forward;
    std::vector<double> backward;
    for (int repeat = 0; repeat < options_.num_repeats; ++repeat) {
      const Measurement once = run(layer, index, input);
      forward.push_back(once.forward_seconds);
      backward.push_back(once.backward_seconds);
    }
    result.forward_seconds = median(std::move(forward));
    result.backward_seconds = median(std::move(backward));
    return result;
  }

 private:
  Measurement run(const Layer& layer, int index, const Message& input) {
    ChargeTo charge(*account_);
    LayerScope scope({.seed = options_.seed, .silent = true, .batch_norm = &batch_norm_});
    Measurement result;
    Message copy = input;
    for (at::Tensor& tensor : copy.tensors)
      tensor = tensor.defined() ? tensor.clone() : tensor;
    BoundaryInputs boundary(copy);
    copy = {};
    const int64_t before = bytes(*account_).live;
    Tensors outputs;
    {
      AutocastScope autocast(c10::kCPU, options_.autocast);
      const auto start = Clock::now();
      outputs = run_layer(scope, layer, index, boundary.tensors());
      result.forward_seconds = seconds_since(start);
    }
    result.output = detach(outputs);
    result.kept_bytes = std::max<int64_t>(bytes(*account_).live - before - bytes_of(outputs), 0);
    result.backward_seconds = run_backward(outputs);
    return result;
  }

  const ProfileOptions& options_;
  DeferredBatchNorm batch_norm_;
  std::shared_ptr<Account> account_ = make_account("profile");
};

plan::LayerCost to_cost(const Layer& layer, const Measurement& measured) {
  plan::LayerCost cost;
  cost.name = layer.name();
  cost.forward_seconds = measured.forward_seconds;
  cost.backward_seconds = measured.backward_seconds;
  cost.output_bytes = bytes_of(measured.output.tensors);
  cost.activation_bytes = measured.kept_bytes;
  if (!layer.module())
    return cost;
  for (const at::Tensor& parameter : layer.module()->parameters()) {
    cost.parameters += parameter.numel();
    cost.parameter_bytes += static_cast<int64_t>(parameter.nbytes());
  }
  return cost;
}

}  // namespace

plan::CostTable profile(Layers& layers, const Values& micro_batch, const ProfileOptions& options) {
  GPIPE_CHECK(
      options.num_repeats > 0, "[profile] ", options.num_repeats, " repeats; use at least 1");
  layers.build(options.seed);
  TrainingState state(layers);
  IntraOpThreads threads(options.num_threads);
  at::AutoGradMode grad_mode(true);
  plan::CostTable table;
  table.micro_batch_rows = micro_batch.front().size(0);
  table.input_bytes = bytes_of(micro_batch);
  Profiler profiler(layers, options);
  Message value = detach(micro_batch);
  for (int i = 0; i < layers.size(); ++i) {
    Measurement measured = profiler.measure(layers[i], i, value);
    table.layers.push_back(to_cost(layers[i], measured));
    value = std::move(measured.output);
  }
  return table;
}

}  // namespace gpipe
