#include "app/pipeline_setup.h"

#include <ATen/Version.h>
#include <torch/version.h>

#include <numeric>
#include <sstream>
#include <utility>

#include "app/model.h"
#include "gpipe/plan/lower.h"

namespace gpipe::app {
namespace {

std::vector<c10::Device> to_devices(const std::string& text, int64_t stages) {
  std::vector<c10::Device> devices;
  std::istringstream list(text);
  std::string name;
  while (std::getline(list, name, ','))
    devices.emplace_back(name);
  if (devices.size() == 1)
    devices.resize(static_cast<size_t>(stages), devices.front());
  if (text == "cuda")
    for (size_t stage = 0; stage < devices.size(); ++stage)
      devices[stage] = c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(stage));
  if (static_cast<int64_t>(devices.size()) != stages)
    throw UsageError(detail::concatenate(
        "[config] `device` lists ", devices.size(), " devices for ", stages, " stages"));
  return devices;
}

}  // namespace

c10::ScalarType weight_dtype(const Options& options) {
  return options.dtype == "float64" ? c10::kDouble : c10::kFloat;
}

Layers make_layers(const Options& options) {
  Layers layers = make_model(options);
  if (layers.size() < options.stages)
    throw UsageError(detail::concatenate(
        "[config] ",
        options.stages,
        " stages for the ",
        layers.size(),
        " layers of ",
        options.model,
        "; use at most --stages ",
        layers.size()));
  layers.build(static_cast<uint64_t>(options.seed));
  for (int i = 0; i < layers.size(); ++i)
    if (const auto& module = layers[i].module(); module && options.dtype == "float64")
      module->to(c10::kDouble);
  return layers;
}

PipelineOptions to_pipeline_options(const Options& options, const Cut& cut) {
  PipelineOptions pipeline;
  pipeline.num_stages = static_cast<int>(options.stages);
  pipeline.num_micro_batches = static_cast<int>(options.micro_batches);
  pipeline.schedule = options.schedule;
  pipeline.rematerialize = plan::rematerialize_from_string(options.rematerialize);
  pipeline.cut = cut.layers_per_stage;
  if (options.device != "cpu")
    pipeline.devices = to_devices(options.device, options.stages);
  pipeline.num_threads = static_cast<int>(options.threads);
  pipeline.seed = static_cast<uint64_t>(options.seed);
  if (options.dtype == "bfloat16")
    pipeline.autocast = c10::kBFloat16;
  return pipeline;
}

std::vector<StageRecord> to_records(const Pipeline& pipeline, const Cut& cut) {
  const double total = std::accumulate(cut.layer_costs.begin(), cut.layer_costs.end(), 0.0);
  std::vector<StageRecord> records;
  for (const StageInfo& info : pipeline.stages()) {
    StageRecord record;
    record.layers = info.layers;
    record.parameters = info.num_parameters;
    record.peak_bytes = info.peak_bytes;
    const auto first = cut.layer_costs.begin() + info.first_layer;
    const auto last = first + static_cast<ptrdiff_t>(info.layers.size());
    record.cost_share = total > 0 ? std::accumulate(first, last, 0.0) / total : 0;
    records.push_back(std::move(record));
  }
  return records;
}

Fingerprint make_fingerprint(const Options& options) {
  return {
      .libtorch_version = TORCH_VERSION,
      .cpu_capability = at::get_cpu_capability(),
      .dtype = options.dtype,
      .device = options.device,
      .schedule = options.schedule,
      .threads = options.threads,
      .micro_batches = options.micro_batches,
      .seed = options.seed};
}

}  // namespace gpipe::app
