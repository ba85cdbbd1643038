#include "gpipe/core/pipeline_impl.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "gpipe/base/error.h"
#include "gpipe/core/cut.h"
#include "gpipe/core/device.h"
#include "gpipe/core/micro_batch.h"
#include "gpipe/plan/schedules.h"

namespace gpipe {
namespace {

/// A parameter that two stages hold would be updated twice, from gradients of one stage each; a buffer would be changed by
/// two threads at once.
void refuse_shared_across_stages(const std::vector<std::unique_ptr<Stage>>& stages) {
  struct Owner {
    int stage;
    std::string layer;
  };
  std::unordered_map<const c10::TensorImpl*, Owner> owners;
  for (const auto& stage : stages) {
    for (int i = 0; i < stage->layers().size(); ++i) {
      const Layer& layer = stage->layers()[i];
      if (!layer.module())
        continue;
      auto items = layer.module()->named_parameters().pairs();
      for (const auto& buffer : layer.module()->named_buffers().pairs())
        items.push_back(buffer);
      for (const auto& [name, tensor] : items) {
        if (!tensor.defined())
          continue;
        const auto [found, is_new] =
            owners.emplace(tensor.unsafeGetTensorImpl(), Owner{stage->index(), layer.name()});
        const Owner& owner = found->second;
        GPIPE_CHECK(
            is_new || owner.stage == stage->index(),
            "[pipeline] parameter or buffer '",
            name,
            "' of layer '",
            layer.name(),
            "' (stage ",
            stage->index(),
            ") is also used by layer '",
            owner.layer,
            "' (stage ",
            owner.stage,
            "); cut the network so that both are on one stage");
      }
    }
  }
}

/// Files hold tensors by name: `layer.parameter`, where both may have dots.
void refuse_equal_names(const Layers& layers) {
  std::unordered_map<std::string, std::string> owners;
  for (int i = 0; i < layers.size(); ++i) {
    if (!layers[i].module())
      continue;
    auto names = layers[i].module()->named_parameters().keys();
    for (const auto& name : layers[i].module()->named_buffers().keys())
      names.push_back(name);
    for (const auto& name : names) {
      const auto [found, is_new] = owners.emplace(layers[i].name() + "." + name, layers[i].name());
      GPIPE_CHECK(
          is_new,
          "[pipeline] layers '",
          found->second,
          "' and '",
          layers[i].name(),
          "' both have a tensor named '",
          found->first,
          "'; rename one of the layers");
    }
  }
}

std::vector<std::vector<bool>> find_recomputes(
    const std::vector<plan::Program>& programs, int num_stages, int num_micro_batches) {
  std::vector<std::vector<bool>> found(
      static_cast<size_t>(num_stages), std::vector<bool>(static_cast<size_t>(num_micro_batches)));
  for (const plan::Program& program : programs) {
    for (const plan::Action& action : program) {
      if (action.op != plan::Op::Recompute)
        continue;
      found[static_cast<size_t>(action.stage)][static_cast<size_t>(action.micro_batch)] = true;
    }
  }
  return found;
}

bool belongs_to_forward(plan::Op op) {
  return op == plan::Op::Forward || op == plan::Op::SendActivation ||
         op == plan::Op::RecvActivation;
}

std::vector<plan::Program> half_of(const std::vector<plan::Program>& programs, bool forward) {
  std::vector<plan::Program> halves(programs.size());
  for (size_t rank = 0; rank < programs.size(); ++rank) {
    for (const plan::Action& action : programs[rank]) {
      if (belongs_to_forward(action.op) == forward)
        halves[rank].push_back(action);
    }
  }
  return halves;
}

}  // namespace

at::Tensor merge_input_gradients(const MiniBatch& batch, size_t input) {
  bool has_any = false;
  Tensors parts;
  for (size_t m = 0; m < batch.inputs.size(); ++m) {
    const Tensors& gradients = batch.input_gradients[m];
    const bool has_one = input < gradients.size() && gradients[input].defined();
    has_any = has_any || has_one;
    parts.push_back(has_one ? gradients[input] : at::zeros_like(batch.inputs[m][input]));
  }
  if (!has_any)
    return {};
  return parts.size() == 1 ? parts.front() : at::cat(parts);
}

Pipeline::Impl::Impl(Layers given_layers, PipelineOptions given_options)
    : layers(std::move(given_layers)), options(std::move(given_options)) {
  const int num_stages = options.num_stages;
  GPIPE_CHECK(
      options.num_micro_batches > 0,
      "[pipeline] ",
      options.num_micro_batches,
      " micro-batches; use at least 1");
  GPIPE_CHECK(
      options.num_threads > 0,
      "[pipeline] ",
      options.num_threads,
      " threads per stage; use at least 1");
  GPIPE_CHECK(
      !options.autocast || *options.autocast == at::kBFloat16 || *options.autocast == at::kHalf,
      "[pipeline] autocast to ",
      *options.autocast,
      " is not possible; use bfloat16 (on CPUs) or float16 (on GPUs)");
  // All layers live in this process: each factory is run once, before its parameters are counted.
  if (options.cut.empty() && num_stages <= layers.size())
    layers.build(options.seed);
  options.cut = resolve_cut(layers, num_stages, options.cut);
  options.devices = resolve_devices(options.devices, num_stages);
  plan::make_schedule(options.schedule, num_stages, options.num_micro_batches);
  layers.build(options.seed);
  int first_layer = 0;
  for (int stage = 0; stage < num_stages; ++stage) {
    const int end = first_layer + options.cut[static_cast<size_t>(stage)];
    stages.push_back(std::make_unique<Stage>(
        stage,
        first_layer,
        layers.slice(first_layer, end),
        options.devices[static_cast<size_t>(stage)]));
    first_layer = end;
  }
  refuse_shared_across_stages(stages);
  refuse_equal_names(layers);
  workers = std::make_unique<WorkerThreads>(num_stages, [num_threads = options.num_threads](int) {
    at::get_num_threads();  // else the thread's first operator would read the number that the process began with
    at::set_num_threads(num_threads);
  });
  transport = std::make_unique<LocalTransport<Message>>(num_stages);
}

ReadySchedule& Pipeline::Impl::step_schedule(int num_micro_batches) {
  ReadySchedule& ready = step_schedules[num_micro_batches];
  if (ready.step)
    return ready;
  const auto schedule =
      plan::make_schedule(options.schedule, options.num_stages, num_micro_batches);
  auto programs = plan::lower(schedule, options.rematerialize);
  ready.rematerialize = find_recomputes(programs, options.num_stages, num_micro_batches);
  ready.step = std::make_unique<Executor<Message>>(
      std::move(programs), plan::stage_ranks(schedule), num_micro_batches, *workers, *transport);
  return ready;
}

ReadySchedule& Pipeline::Impl::half_schedule(int num_micro_batches) {
  ReadySchedule& ready = half_schedules[num_micro_batches];
  if (ready.forward_half)
    return ready;
  const auto schedule = plan::make_fill_drain(options.num_stages, num_micro_batches);
  const auto programs = plan::lower(schedule, options.rematerialize);
  const auto ranks = plan::stage_ranks(schedule);
  ready.rematerialize = find_recomputes(programs, options.num_stages, num_micro_batches);
  ready.forward_half = std::make_unique<Executor<Message>>(
      half_of(programs, true), ranks, num_micro_batches, *workers, *transport);
  ready.backward_half = std::make_unique<Executor<Message>>(
      half_of(programs, false), ranks, num_micro_batches, *workers, *transport);
  return ready;
}

MiniBatch Pipeline::Impl::make_mini_batch(
    const Values& inputs, const std::vector<int64_t>& rows) const {
  at::NoGradGuard no_grad;
  const c10::InferenceMode no_inference(false);
  MiniBatch batch;
  batch.seed = options.seed;
  batch.step = step_count;
  batch.is_training = is_training;
  batch.autocast = autocast();
  Tensors detached;
  for (const at::Tensor& input : inputs) {
    // Tensors of inference mode tell nobody when they are changed in place.
    detached.push_back(
        !input.defined()       ? at::Tensor()
        : input.is_inference() ? input.clone()
                               : input.variable_data());
    batch.inputs_require_grad.push_back(input.defined() && input.requires_grad());
  }
  batch.inputs = split(detached, rows);
  batch.input_gradients.resize(rows.size());
  batch.losses.resize(rows.size());
  batch.outputs.resize(rows.size());
  batch.output_gradients.resize(rows.size());
  return batch;
}

std::vector<std::unique_ptr<StageRun>> Pipeline::Impl::make_runs(
    MiniBatch& batch, const ReadySchedule& schedule) {
  std::vector<std::unique_ptr<StageRun>> runs;
  for (int stage = 0; stage <= last_stage(); ++stage) {
    const auto index = static_cast<size_t>(stage);
    runs.push_back(std::make_unique<StageRun>(
        *stages[index], batch, schedule.rematerialize[index], stage == 0, stage == last_stage()));
  }
  return runs;
}

void Pipeline::Impl::run(
    Executor<Message>& executor, const std::vector<std::unique_ptr<StageRun>>& runs, bool commits) {
  std::vector<StageTask<Message>*> tasks;
  for (const auto& run : runs)
    tasks.push_back(run.get());
  for (const auto& stage : stages)
    stage->buffers().begin();
  try {
    timeline = executor.run(tasks);
  } catch (...) {
    for (const auto& stage : stages) {
      stage->batch_norm().discard();
      stage->buffers().restore();
    }
    throw;
  }
  for (const auto& stage : stages) {
    commits ? stage->batch_norm().commit() : stage->batch_norm().discard();
    stage->buffers().end();
  }
}

std::optional<c10::ScalarType> Pipeline::Impl::autocast() const {
  if (options.autocast)
    return options.autocast;
  const auto device = options.devices.front().type();
  if (at::autocast::is_autocast_enabled(device))
    return at::autocast::get_autocast_dtype(device);
  return std::nullopt;
}

}  // namespace gpipe
