#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpipe/core/layer.h"
#include "gpipe/core/loss.h"
#include "gpipe/core/tensors.h"
#include "gpipe/plan/lower.h"
#include "gpipe/plan/timeline.h"

namespace gpipe {

struct PipelineOptions {
  /// K: the number of stages; each has a thread of its own.
  int num_stages = 1;
  /// M: the number of micro-batches that a mini-batch is split into.
  int num_micro_batches = 1;
  /// `gpipe` (fill-drain: all forwards, then all backwards, last micro-batch first) or `1f1b`.
  std::string schedule = "gpipe";
  plan::Rematerialize rematerialize = plan::Rematerialize::ExceptLast;
  /// Number of layers of each stage. Empty: balanced by number of parameters; see profile.h for a
  /// cut by time.
  std::vector<int> cut = {};
  /// Device of each stage; empty: the CPU for all.
  std::vector<c10::Device> devices = {};
  /// Intra-op threads of each stage. Never derived from K: kernels, and so bits, depend on it.
  int num_threads = 1;
  /// Key of everything random: initial parameters of factories, dropout, draws in losses and in
  /// backward.
  uint64_t seed = 0;
  /// Runs the forward under autocast to this dtype (bfloat16 on CPUs); parameters and gradients
  /// stay as they are.
  std::optional<c10::ScalarType> autocast = std::nullopt;
};

/// What a stage holds.
struct StageInfo {
  int first_layer = 0;
  std::vector<std::string> layers;
  int64_t num_parameters = 0;
  c10::Device device = c10::kCPU;
  /// Bytes of tensors that the stage's thread allocated, now and at most; 0 where the allocator is
  /// not metered (allocator.h).
  int64_t live_bytes = 0;
  int64_t peak_bytes = 0;
};

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Trains a network given as layers, cut into K stages, M micro-batches at a time (the GPipe
/// paper). For equal options but K, cut and re-materialization, the loss, gradients, weights,
/// BatchNorm statistics and random draws have the same bits.
///
/// A pipeline that was moved from may only be destroyed or assigned to.
/// Threads: a pipeline is used by one thread at a time; several pipelines may live in one process.
/// Errors: the first error of any stage is thrown to the caller as a StageError once all stages
/// have stopped. Parameters and buffers are then as before the call; gradients are undefined until
/// zero_grad(); the next call works.
class Pipeline {
 public:
  /// Builds the layers that are given as factories and cuts the network. The pipeline shares the
  /// layers' modules. Throws Error for K > L, a cut that does not add up, unknown schedules,
  /// parameters shared across stages.
  Pipeline(Layers layers, PipelineOptions options);
  ~Pipeline();
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;

  /// One training step over a mini-batch: forward, loss and backward of every micro-batch;
  /// gradients are added to
  /// `.grad` of the parameters. Returns the loss of the mini-batch, a scalar without graph.
  /// Inputs and targets are [rows, ...]; all must have the same number of rows. Fewer rows than M
  /// makes fewer micro-batches. Where an input requires a gradient, its `.grad` is added to as
  /// well. `gradient_scale` multiplies the gradients (1/n to accumulate n steps as one mini-batch).
  at::Tensor step(
      const Values& inputs, const Values& targets, const Loss& loss, double gradient_scale = 1);

  /// The network's single output for the whole mini-batch. With gradients on it is part of the caller's autograd graph:
  /// backward() through it runs the pipeline's backward (fill-drain), once. Under NoGradGuard nothing is kept, and the batch
  /// may have any size. Throws Error where the network returns several outputs: see forward_all().
  at::Tensor forward(const Values& inputs);
  Tensors forward_all(const Values& inputs);

  /// Called on the last stage's thread for each micro-batch of step(), after its forward and before
  /// its graph is dropped: for metrics. Outputs have no graph. Micro-batches come in order. An
  /// empty function switches it off.
  using Observer =
      std::function<void(int micro_batch, const Tensors& outputs, const Tensors& targets)>;
  void observe(Observer observer);

  /// All parameters, in layer order, each once; names are `layer.parameter`.
  std::vector<at::Tensor> parameters() const;
  /// The same, by stage.
  std::vector<std::vector<at::Tensor>> parameters_by_stage() const;
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;

  /// The mode of the pipeline and of all modules. A new pipeline trains, and its modules keep the modes they have until
  /// one of these is called: a layer that was frozen with eval() stays so.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const;

  /// Drops the gradients of all parameters.
  void zero_grad();

  /// Scales all gradients so that their norm is at most `max_norm`, as
  /// torch::nn::utils::clip_grad_norm_, and returns the norm before. Norms of parameters are
  /// combined in layer order: the same bits for every K.
  double clip_grad_norm(double max_norm, double norm_type = 2);

  /// Runs `function(stage, parameters of the stage)` for all stages side by side, each on its
  /// stage's thread.
  void for_each_stage(
      const std::function<void(int stage, const std::vector<at::Tensor>& parameters)>& function);

  const PipelineOptions& options() const;
  const Layers& layers() const;
  std::vector<StageInfo> stages() const;

  /// What ran when in the last step() (or forward()), measured.
  const plan::Timeline& timeline() const;

  /// Number of training steps so far: part of the random key. A resumed run sets it.
  int64_t step_count() const;
  void set_step_count(int64_t step);

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpipe
