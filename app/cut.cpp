#include "app/cut.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "gpipe/core/profile.h"
#include "gpipe/plan/partition.h"

namespace gpipe::app {
namespace {

/// How often the forward of a micro-batch is run again, on average.
double recomputes(const Options& options) {
  if (options.rematerialize == "never")
    return 0;
  const auto micro_batches = static_cast<double>(options.micro_batches);
  return options.rematerialize == "always" ? 1 : (micro_batches - 1) / micro_batches;
}

plan::CostTable profile_or_explain(
    Layers& layers, const data::Batch& micro_batch, const ProfileOptions& how) {
  try {
    return profile(layers, micro_batch.inputs, how);
  } catch (const c10::Error& error) {
    throw Error(detail::concatenate(
        "[cut] the layers cannot be measured on a micro-batch of ",
        micro_batch.rows(),
        micro_batch.rows() == 1 ? " row: " : " rows: ",
        error.what_without_backtrace()));
  }
}

std::vector<double> measure(const Options& options, Layers& layers, const data::Batch& example) {
  ProfileOptions how;
  how.num_threads = static_cast<int>(options.threads);
  how.seed = static_cast<uint64_t>(options.seed);
  if (options.dtype == "bfloat16")
    how.autocast = c10::kBFloat16;
  const int64_t rows = (example.rows() + options.micro_batches - 1) / options.micro_batches;
  const plan::CostTable table = profile_or_explain(layers, example.narrow(0, rows), how);
  std::vector<double> costs;
  for (const plan::LayerCost& layer : table.layers)
    costs.push_back(layer.forward_seconds * (1 + recomputes(options)) + layer.backward_seconds);
  return costs;
}

std::vector<double> parameter_counts(const Layers& layers) {
  const auto counts = layers.num_parameters_per_layer();
  return {counts.begin(), counts.end()};
}

void check_sum(const Options& options, const std::vector<int>& cut, const Layers& layers) {
  const int sum = std::accumulate(cut.begin(), cut.end(), 0);
  if (sum != layers.size())
    throw UsageError(detail::concatenate(
        "[config] `cut` ",
        options.cut,
        " adds up to ",
        sum,
        " layers; ",
        options.model,
        " has ",
        layers.size()));
}

}  // namespace

Cut make_cut(const Options& options, Layers& layers, const data::Batch& example) {
  Cut cut;
  cut.cost_name = options.cut;
  if (const auto listed = options.explicit_cut()) {
    check_sum(options, *listed, layers);
    return {*listed, parameter_counts(layers), "parameters"};
  }
  if (options.cut == "even") {
    cut.cost_name = "layers";
    cut.layer_costs.assign(static_cast<size_t>(layers.size()), 1);
  } else if (options.cut == "parameters" || options.stages == 1) {
    cut.layer_costs = parameter_counts(layers);
  } else {
    cut.layer_costs = measure(options, layers, example);
  }
  cut.layers_per_stage = plan::layers_per_stage(
      plan::make_partition(cut.layer_costs, static_cast<int>(options.stages)));
  return cut;
}

}  // namespace gpipe::app
