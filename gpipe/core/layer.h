#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpipe/core/forward_adaptor.h"
#include "gpipe/core/tensors.h"

namespace gpipe {

/// The smallest unit that is moved between stages: a name, a function Tensors -> Tensors, and the
/// module whose parameters and buffers it uses (none for a plain callable). A layer may be given as
/// a factory, which is run by build(), once, only where the layer lives.
class Layer {
 public:
  using Function = std::function<Tensors(const Tensors&)>;
  /// What a factory returns: the function and its module.
  struct Body {
    Function forward;
    std::shared_ptr<torch::nn::Module> module;
  };

  Layer(std::string name, Body body) : name_(std::move(name)), body_(std::move(body)) {}
  Layer(std::string name, std::function<Body()> factory)
      : name_(std::move(name)), factory_(std::move(factory)) {}

  const std::string& name() const { return name_; }
  bool is_built() const { return body_.forward != nullptr; }
  bool has_factory() const { return factory_ != nullptr; }

  /// Runs the factory, if the layer is not built. Its parameters are drawn under the key (seed,
  /// name), so they are the same whichever other layers are built, in whichever order, on whichever
  /// thread.
  void build(uint64_t seed);

  /// Null for a callable, and before build().
  const std::shared_ptr<torch::nn::Module>& module() const { return body_.module; }

  /// Runs the layer once, as it is: no key, no scope. Throws what the layer throws. Must be built.
  Tensors forward(const Tensors& inputs) const;

  /// Number of elements of all parameters, each counted once. A layer that is not built is built on
  /// the meta device for this and dropped: no memory is taken for its large tensors, as long as its
  /// factory does not read them.
  int64_t num_parameters() const;

 private:
  std::string name_;
  Body body_;
  std::function<Body()> factory_;
};

namespace detail {

template <class T>
struct IsModuleHolder : std::is_base_of<torch::detail::ModuleHolderIndicator, T> {};

template <class T>
struct IsModulePointer : std::false_type {};
template <class M>
struct IsModulePointer<std::shared_ptr<M>> : std::is_base_of<torch::nn::Module, M> {};

template <class T>
concept ModuleLike =
    IsModuleHolder<std::decay_t<T>>::value || IsModulePointer<std::decay_t<T>>::value;

template <class M>
std::shared_ptr<M> module_pointer(const std::shared_ptr<M>& module) {
  return module;
}
template <class M>
  requires IsModuleHolder<M>::value
auto module_pointer(const M& holder) {
  return holder.ptr();
}

template <ModuleLike M>
Layer::Body make_body(const M& module) {
  auto pointer = module_pointer(module);
  GPIPE_CHECK(pointer != nullptr, "[layers] a layer's module is null");
  return {[pointer](const Tensors& inputs) { return call_forward(*pointer, inputs); }, pointer};
}

template <ModuleLike M, class F>
Layer::Body make_body(const M& module, F function) {
  auto pointer = module_pointer(module);
  GPIPE_CHECK(pointer != nullptr, "[layers] a layer's module is null");
  auto shared = std::make_shared<F>(std::move(function));
  auto forward = [pointer, shared](const Tensors& inputs) {
    auto bound = [&](const auto&... values) -> decltype((*shared)(*pointer, values...)) {
      return (*shared)(*pointer, values...);
    };
    if constexpr (is_callable<decltype(bound)>()) {
      return call_with_all(bound, inputs);
    } else {
      return flattened((*shared)(*pointer, inputs));
    }
  };
  return {forward, pointer};
}

// Holders first: to ask whether one can be called is an error where its module takes something.
template <class F>
concept Factory =
    !ModuleLike<F> && std::is_invocable_v<F&> &&
    (ModuleLike<std::invoke_result_t<F&>> || std::is_same_v<std::invoke_result_t<F&>, Layer::Body>);

template <Factory F>
Layer::Body run_factory(F& factory) {
  if constexpr (ModuleLike<std::invoke_result_t<F&>>) {
    return make_body(factory());
  } else {
    return factory();
  }
}

}  // namespace detail

/// A network as a sequence of layers: what the paper asks of the user. Copies share the layers.
///
/// ```cpp
/// gpipe::Layers layers;
/// layers.push_back("stem", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 64, 3)));  // any module
/// layers.push_back("flatten", [](at::Tensor x) { return x.flatten(1); });           // any callable
/// layers.push_back("lstm", torch::nn::LSTM(64, 64),            // a module, called your way
///                  [](auto& lstm, at::Tensor x) { return std::get<0>(lstm.forward(x)); });
/// layers.push_back("head", [] { return torch::nn::Linear(64, 10); });  // a factory
/// ```
/// A layer takes what the one before returns: one tensor or several, undefined and integer ones
/// too.
class Layers {
 public:
  Layers() = default;

  /// A module that has a `forward` over tensors, unmodified. It is shared with the caller, not
  /// copied.
  template <detail::ModuleLike M>
  void push_back(std::string name, const M& module) {
    push_back(Layer(std::move(name), detail::make_body(module)));
  }

  /// A module and how to call it: `function(module, tensors...)`.
  template <detail::ModuleLike M, class F>
  void push_back(std::string name, const M& module, F function) {
    push_back(Layer(std::move(name), detail::make_body(module, std::move(function))));
  }

  /// A factory: callable without arguments, returns a module. Run by build(), where the layer lives, and, to count
  /// parameters before that, on the meta device; so it must be able to run more than once.
  template <detail::Factory F>
  void push_back(std::string name, F factory) {
    auto shared = std::make_shared<F>(std::move(factory));
    push_back(Layer(std::move(name), std::function<Layer::Body()>([shared] {
                      return detail::run_factory(*shared);
                    })));
  }

  /// Any other callable over tensors, without parameters.
  template <class F>
    requires(!detail::ModuleLike<F> && !detail::Factory<F>)
  void push_back(std::string name, F function) {
    auto shared = std::make_shared<F>(std::move(function));
    push_back(Layer(
        std::move(name),
        Layer::Body{
            [shared](const Tensors& inputs) { return detail::call(*shared, inputs); }, nullptr}));
  }

  /// Throws Error for an empty name or one that is taken.
  void push_back(Layer layer);

  int size() const { return static_cast<int>(layers_.size()); }
  bool empty() const { return layers_.empty(); }
  Layer& operator[](int index) { return *layers_.at(static_cast<size_t>(index)); }
  const Layer& operator[](int index) const { return *layers_.at(static_cast<size_t>(index)); }

  /// The layers [begin, end), shared.
  Layers slice(int begin, int end) const;

  /// Builds all that are not built; see Layer::build.
  void build(uint64_t seed);

  /// Number of parameters of each layer, without allocating those of layers that are not built. [L]
  std::vector<int64_t> num_parameters_per_layer() const;
  int64_t num_parameters() const;

 private:
  std::vector<std::shared_ptr<Layer>> layers_;
};

}  // namespace gpipe
