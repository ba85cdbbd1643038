#include "gpipe/core/stage_run.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/engine.h>

#include <optional>
#include <string>
#include <utility>

#include "gpipe/core/autocast_scope.h"
#include "gpipe/core/stage_error.h"

namespace gpipe {
namespace {

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& e) {
    return e.what_without_backtrace();
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

Message to_device(Message message, c10::Device device) {
  for (at::Tensor& tensor : message.tensors) {
    if (tensor.defined() && tensor.device() != device)
      tensor = tensor.to(device, /*non_blocking=*/true);
  }
  return message;
}

bool share_memory(const Tensors& some, const Tensors& others) {
  for (const at::Tensor& a : some) {
    for (const at::Tensor& b : others) {
      if (a.defined() && b.defined() && a.is_alias_of(b))
        return true;
    }
  }
  return false;
}

bool has_aliases(const Tensors& tensors) {
  for (size_t i = 1; i < tensors.size(); ++i) {
    if (share_memory({tensors[i]}, {tensors.begin(), tensors.begin() + static_cast<ptrdiff_t>(i)}))
      return true;
  }
  return false;
}

/// A copy with the same strides, for the next kernel is chosen by them.
at::Tensor copy_of(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided || tensor.numel() == 0)
    return tensor.clone();
  int64_t span = 1;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim)
    span += (tensor.size(dim) - 1) * tensor.stride(dim);
  at::NoGradGuard no_grad;
  const at::Tensor memory = tensor.as_strided({span}, {1}, tensor.storage_offset()).clone();
  return memory.as_strided(tensor.sizes(), tensor.strides(), 0);
}

}  // namespace

StageRun::StageRun(
    Stage& stage,
    MiniBatch& mini_batch,
    const std::vector<bool>& rematerialize,
    bool is_first,
    bool is_last)
    : stage_(stage),
      batch_(mini_batch),
      rematerialize_(rematerialize),
      is_first_(is_first),
      is_last_(is_last),
      saved_(static_cast<size_t>(mini_batch.num_micro_batches())) {}

/// Runs the work of one action in the scope of its micro-batch and names the place in what it throws.
template <class Work>
auto StageRun::guarded(plan::Op op, int micro_batch, bool silent, const Work& work) {
  ChargeTo charge(stage_.account());
  at::AutoGradMode grad_mode(batch_.keeps_graphs);
  LayerScope scope(
      {.seed = batch_.seed,
       .step = batch_.step,
       .micro_batch = micro_batch,
       .silent = silent,
       .batch_norm = batch_.defers_batch_norm ? &stage_.batch_norm() : nullptr});
  try {
    return work(scope);
  } catch (const StageError&) {
    throw;
  } catch (...) {
    const int layer = scope.current_layer();
    const std::string name = layer == LayerScope::kLoss ? "the loss"
                             : layer >= 0 ? stage_.layers()[layer - stage_.first_layer()].name()
                                          : "";
    throw StageError(
        {op, stage_.index(), micro_batch}, layer, name, text_of(std::current_exception()));
  }
}

Message StageRun::forward(int micro_batch, Message input) {
  return guarded(plan::Op::Forward, micro_batch, /*silent=*/false, [&](LayerScope& scope) {
    AutocastScope autocast(stage_.device().type(), batch_.autocast);
    if (is_first_)
      input = first_input(micro_batch);
    input = to_device(std::move(input), stage_.device());
    Message output;
    if (!batch_.keeps_graphs) {
      output = run_without_graph(scope, input);
    } else if (rematerialize_[static_cast<size_t>(micro_batch)]) {
      saved_[static_cast<size_t>(micro_batch)].inputs = input;
      output = run_and_drop(scope, std::move(input));
    } else {
      output = run_and_keep(scope, micro_batch, input);
    }
    if (is_last_)
      finish(micro_batch, output);
    return is_last_ ? Message() : output;
  });
}

void StageRun::recompute(int micro_batch) {
  guarded(plan::Op::Recompute, micro_batch, /*silent=*/true, [&](LayerScope& scope) {
    AutocastScope autocast(stage_.device().type(), batch_.autocast);
    stage_.buffers().begin_recompute();
    Saved& saved = saved_[static_cast<size_t>(micro_batch)];
    run_and_keep(scope, micro_batch, std::exchange(saved.inputs, {}));
    stage_.buffers().end_recompute();
  });
}

Message StageRun::backward(int micro_batch, Message gradient) {
  return guarded(plan::Op::Backward, micro_batch, /*silent=*/true, [&](LayerScope&) {
    Saved saved = std::exchange(saved_[static_cast<size_t>(micro_batch)], {});
    if (is_last_ && batch_.loss == nullptr) {
      gradient.tensors =
          std::exchange(batch_.output_gradients[static_cast<size_t>(micro_batch)], {});
    }
    if (is_last_ && batch_.loss != nullptr)
      gradient.tensors = {saved.root_gradient};
    gradient = to_device(std::move(gradient), stage_.device());
    torch::autograd::edge_list roots;
    torch::autograd::variable_list gradients;
    for (size_t i = 0; i < saved.roots.size() && i < gradient.tensors.size(); ++i) {
      if (!saved.roots[i].is_valid() || !gradient.tensors[i].defined())
        continue;
      roots.push_back(std::move(saved.roots[i]));
      gradients.push_back(std::move(gradient.tensors[i]));
    }
    if (!roots.empty()) {
      torch::autograd::Engine::get_default_engine().execute(
          roots, gradients, /*keep_graph=*/false, /*create_graph=*/false, /*accumulate_grad=*/true);
    }
    Message result{saved.boundary.take_gradients(), {}};
    if (!is_first_)
      return result;
    batch_.input_gradients[static_cast<size_t>(micro_batch)] = std::move(result.tensors);
    return Message();
  });
}

Message StageRun::first_input(int micro_batch) const {
  Message input;
  input.tensors = batch_.inputs[static_cast<size_t>(micro_batch)];
  input.requires_grad = batch_.inputs_require_grad;
  return input;
}

Tensors StageRun::run_layers(LayerScope& scope, const Tensors& inputs) {
  Tensors values = inputs;
  for (int i = 0; i < stage_.layers().size(); ++i) {
    values = run_layer(scope, stage_.layers()[i], stage_.first_layer() + i, values);
  }
  return values;
}

Message StageRun::run_without_graph(LayerScope& scope, const Message& input) {
  BoundaryInputs boundary(guard_inputs(input));
  Message output = detach(run_layers(scope, boundary.tensors()));
  note_change(boundary.is_changed(), has_aliases(input.tensors));
  return output;
}

/// Some operators choose their kernel by whether an input requires a gradient, so this runs as the recompute will, with
/// gradients on, and drops each layer's graph as it goes.
Message StageRun::run_and_drop(LayerScope& scope, Message input) {
  const bool aliased = has_aliases(input.tensors);
  const Message guarded_input = guard_inputs(std::exchange(input, {}));
  Message value = guarded_input;
  bool has_changed = false;
  for (int i = 0; i < stage_.layers().size(); ++i) {
    BoundaryInputs boundary(value);
    value =
        detach(run_layer(scope, stage_.layers()[i], stage_.first_layer() + i, boundary.tensors()));
    has_changed = has_changed || (boundary.is_changed() &&
                                  share_memory(boundary.tensors(), guarded_input.tensors));
  }
  note_change(has_changed, aliased);
  return value;
}

Message StageRun::run_and_keep(LayerScope& scope, int micro_batch, const Message& input) {
  Saved& saved = saved_[static_cast<size_t>(micro_batch)];
  saved.boundary = BoundaryInputs(guard_inputs(input));
  Tensors outputs = run_layers(scope, saved.boundary.tensors());
  note_change(saved.boundary.is_changed(), has_aliases(input.tensors));
  saved.boundary.release_tensors();
  if (is_last_ && batch_.loss != nullptr) {
    keep_loss(scope, micro_batch, outputs);
    return detach(outputs);
  }
  saved.roots.clear();
  for (const at::Tensor& output : outputs) {
    const bool has_graph = output.defined() && output.requires_grad();
    saved.roots.push_back(
        has_graph ? torch::autograd::impl::gradient_edge(output) : detail::Edge());
  }
  return detach(outputs);
}

void StageRun::keep_loss(LayerScope& scope, int micro_batch, const Tensors& outputs) {
  const auto m = static_cast<size_t>(micro_batch);
  scope.enter(LayerScope::kLoss, /*backward=*/false);
  const auto before = nodes_of(outputs);
  const at::Tensor loss =
      (*batch_.loss)(outputs, to_device({batch_.targets[m], {}}, stage_.device()).tensors);
  mark_backward(LayerScope::kLoss, before, {loss});
  batch_.losses[m] = loss.detach();
  const double weight = batch_.gradient_weights[m];
  if (weight == 0)
    return;
  saved_[m].roots = {torch::autograd::impl::gradient_edge(loss)};
  saved_[m].root_gradient = at::full_like(loss, weight);
}

/// After the last stage's forward: the caller's share of it.
void StageRun::finish(int micro_batch, const Message& output) {
  const auto m = static_cast<size_t>(micro_batch);
  if (batch_.loss == nullptr) {
    batch_.outputs[m] = output.tensors;
    batch_.outputs_require_grad.resize(output.tensors.size());
    for (size_t i = 0; i < output.tensors.size(); ++i)
      batch_.outputs_require_grad[i] = batch_.outputs_require_grad[i] || output.requires_grad[i];
    return;
  }
  if (batch_.observer)
    batch_.observer(micro_batch, output.tensors, batch_.targets[m]);
}

/// Copies of the inputs where a layer changes them in place, for they may be needed again: by the recompute, by the graph
/// of the stage that sent them, by the caller.
Message StageRun::guard_inputs(const Message& input) const {
  if (!stage_.changes_inputs(batch_.is_training).value_or(true))
    return input;
  Message copy = input;
  for (at::Tensor& tensor : copy.tensors) {
    if (tensor.defined())
      tensor = copy_of(tensor);
  }
  return copy;
}

/// A layer that was not known to change the inputs has changed what others need: the recompute, the stage that sent it, the
/// caller. From now on the inputs are copied.
void StageRun::note_change(bool has_changed, bool has_aliases) {
  GPIPE_CHECK(
      !has_changed || !has_aliases,
      "a layer changes one of the stage's inputs in place while another input shares its memory; "
      "cut the network elsewhere, "
      "or let the layer before return a copy");
  auto& changes = stage_.changes_inputs(batch_.is_training);
  const bool was_guarded = changes.value_or(true);
  changes = changes.value_or(false) || has_changed;
  GPIPE_CHECK(
      !has_changed || was_guarded,
      "a layer changes its input in place in this micro-batch, and did not in the first, so the "
      "input is no longer as others need it; let it do so always or never");
}

}  // namespace gpipe
