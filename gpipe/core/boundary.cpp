#include "gpipe/core/boundary.h"

#include <utility>

namespace gpipe {
namespace {

/// The end of a stage's graph: keeps the gradients that arrive.
struct GradientSink : detail::Node {
  torch::autograd::variable_list gradients;

  torch::autograd::variable_list apply(torch::autograd::variable_list&& arrived) override {
    gradients = std::move(arrived);
    return {};
  }
};

}  // namespace

Message detach(const Tensors& outputs) {
  Message message;
  message.tensors.reserve(outputs.size());
  message.requires_grad.reserve(outputs.size());
  for (const at::Tensor& output : outputs) {
    message.requires_grad.push_back(output.defined() && output.requires_grad());
    message.tensors.push_back(output.defined() ? output.variable_data() : at::Tensor());
  }
  return message;
}

BoundaryInputs::BoundaryInputs(const Message& message) : num_inputs_(message.tensors.size()) {
  tensors_.reserve(num_inputs_);
  for (size_t i = 0; i < num_inputs_; ++i) {
    const at::Tensor& tensor = message.tensors[i];
    at::Tensor alias = tensor.defined() ? tensor.variable_data() : at::Tensor();
    if (alias.defined() && message.requires_grad[i]) {
      if (!node_)
        node_ = detail::make_node<GradientSink>();
      const auto slot = node_->add_input_metadata(alias);
      torch::autograd::impl::set_gradient_edge(alias, {node_, slot});
      slots_.push_back(i);
    }
    tensors_.push_back(std::move(alias));
  }
}

bool BoundaryInputs::is_changed() const {
  for (const at::Tensor& tensor : tensors_) {
    if (tensor.defined() && tensor._version() != 0)
      return true;
  }
  return false;
}

Tensors BoundaryInputs::take_gradients() {
  Tensors gradients(num_inputs_);
  if (!node_)
    return gradients;
  auto& arrived = static_cast<GradientSink&>(*node_).gradients;
  for (size_t slot = 0; slot < arrived.size(); ++slot)
    gradients[slots_[slot]] = std::move(arrived[slot]);
  arrived.clear();
  return gradients;
}

}  // namespace gpipe
