#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "gpipe/base/error.h"
#include "gpipe/core/tensors.h"

/// Erases the types of a module's `forward`, or of a callable, to Tensors -> Tensors, where its
/// type is still known.
namespace gpipe::detail {

template <class>
inline constexpr bool always_false = false;

/// Hands out the tensors of a value, one after the other, as arguments.
struct Arguments {
  const Tensors& tensors;
  size_t next = 0;

  bool has_more() const { return next < tensors.size(); }
  at::Tensor take() { return has_more() ? tensors[next++] : at::Tensor(); }
};

/// Whether an argument of this type can be made of tensors.
template <class T>
inline constexpr bool is_argument = false;
template <>
inline constexpr bool is_argument<at::Tensor> = true;
template <>
inline constexpr bool is_argument<Tensors> = true;
template <class T>
inline constexpr bool is_argument<std::optional<T>> = true;
template <class... Ts>
inline constexpr bool is_argument<std::tuple<Ts...>> = (is_argument<Ts> && ...);

template <class T>
struct Argument {
  static_assert(
      always_false<T>,
      "gpipe: a layer's forward may take at::Tensor, std::vector<at::Tensor>, std::tuple of "
      "tensors, and std::optional "
      "of these; wrap other signatures in a lambda: layers.push_back(name, module, [](auto& m, "
      "at::Tensor x) {...})");
};

template <>
struct Argument<at::Tensor> {
  static at::Tensor take(Arguments& arguments) { return arguments.take(); }
};

template <>
struct Argument<Tensors> {
  static Tensors take(Arguments& arguments) {
    Tensors rest(
        arguments.tensors.begin() + static_cast<ptrdiff_t>(arguments.next),
        arguments.tensors.end());
    arguments.next = arguments.tensors.size();
    return rest;
  }
};

template <class... Ts>
struct Argument<std::tuple<Ts...>> {
  static std::tuple<Ts...> take(Arguments& arguments) {
    return std::tuple<Ts...>{Argument<Ts>::take(arguments)...};
  }
};

template <class T>
struct Argument<std::optional<T>> {
  static std::optional<T> take(Arguments& arguments) {
    if constexpr (requires { Argument<T>::take(arguments); }) {
      if (arguments.has_more())
        return Argument<T>::take(arguments);
    }
    return std::nullopt;
  }
};

template <>
struct Argument<std::optional<c10::IntArrayRef>> {
  static std::optional<c10::IntArrayRef> take(Arguments&) { return std::nullopt; }
};

inline void flatten(Tensors& into, const at::Tensor& tensor) {
  into.push_back(tensor);
}

inline void flatten(Tensors& into, const Tensors& tensors) {
  into.insert(into.end(), tensors.begin(), tensors.end());
}

template <class T>
void flatten(Tensors& into, const std::optional<T>& value);
template <class A, class B>
void flatten(Tensors& into, const std::pair<A, B>& pair);
template <class T, size_t N>
void flatten(Tensors& into, const std::array<T, N>& values);
template <class... Ts>
void flatten(Tensors& into, const std::tuple<Ts...>& values);

template <class T>
void flatten(Tensors& into, const std::optional<T>& value) {
  if (value) {
    flatten(into, *value);
  } else {
    into.emplace_back();
  }
}

template <class A, class B>
void flatten(Tensors& into, const std::pair<A, B>& pair) {
  flatten(into, pair.first);
  flatten(into, pair.second);
}

template <class T, size_t N>
void flatten(Tensors& into, const std::array<T, N>& values) {
  for (const T& value : values)
    flatten(into, value);
}

template <class... Ts>
void flatten(Tensors& into, const std::tuple<Ts...>& values) {
  std::apply([&](const auto&... value) { (flatten(into, value), ...); }, values);
}

template <class Result>
Tensors flattened(const Result& result) {
  Tensors tensors;
  flatten(tensors, result);
  return tensors;
}

/// The arguments of a function with one signature.
template <class>
struct Signature {
  static constexpr bool is_known = false;
};

template <class... As>
struct ArgumentList {
  static constexpr bool is_known = true;
  static constexpr size_t count = sizeof...(As);
  static constexpr bool takes_all = (std::is_same_v<std::decay_t<As>, Tensors> || ...);
  static constexpr bool takes_tensors = (is_argument<std::decay_t<As>> && ...);

  template <class Call>
  static Tensors apply(Call&& call, const Tensors& inputs) {
    Arguments arguments{inputs};
    std::tuple<std::decay_t<As>...> values{Argument<std::decay_t<As>>::take(arguments)...};
    GPIPE_CHECK(
        !arguments.has_more(),
        "the layer takes ",
        arguments.next,
        " tensors and is given ",
        inputs.size(),
        "; let it take and return all that later layers need");
    return std::apply([&](auto&... value) { return flattened(call(value...)); }, values);
  }
};

template <class R, class... As>
struct Signature<R (*)(As...)> : ArgumentList<As...> {};
template <class R, class C, class... As>
struct Signature<R (C::*)(As...)> : ArgumentList<As...> {};
template <class R, class C, class... As>
struct Signature<R (C::*)(As...) const> : ArgumentList<As...> {};
template <class R, class C, class... As>
struct Signature<R (C::*)(As...) noexcept> : ArgumentList<As...> {};
template <class R, class C, class... As>
struct Signature<R (C::*)(As...) const noexcept> : ArgumentList<As...> {};

template <class, class>
inline constexpr bool is_callable_with = false;
template <class Call, size_t... I>
inline constexpr bool is_callable_with<Call, std::index_sequence<I...>> =
    std::is_invocable_v<Call&, decltype((void)I, std::declval<at::Tensor>())...>;

/// Whether call_with_all() can call it with any number of tensors.
template <class Call, size_t N = 0>
constexpr bool is_callable() {
  if constexpr (is_callable_with<Call, std::make_index_sequence<N>>) {
    return true;
  } else if constexpr (N < 6) {
    return is_callable<Call, N + 1>();
  } else {
    return false;
  }
}

/// Calls an overloaded or generic callable with as many tensors as there are: up to six.
template <size_t N = 0, class Call>
Tensors call_with_all(Call& call, const Tensors& inputs) {
  if constexpr (N > 6) {
    throw Error(concatenate("the layer cannot be called with ", inputs.size(), " tensors"));
  } else {
    if (inputs.size() != N)
      return call_with_all<N + 1>(call, inputs);
    return [&]<size_t... I>(std::index_sequence<I...>) -> Tensors {
      if constexpr (is_callable_with<Call, std::index_sequence<I...>>) {
        return flattened(call(at::Tensor(inputs[I])...));
      } else {
        throw Error(concatenate("the layer cannot be called with ", N, " tensors"));
      }
    }(std::make_index_sequence<N>());
  }
}

/// Calls anything callable. A lambda has no default arguments, so the tensors it is given must be
/// as many as it takes.
template <class Function>
Tensors call(Function& function, const Tensors& inputs) {
  using Plain = std::decay_t<Function>;
  if constexpr (std::is_pointer_v<Plain>) {
    return Signature<Plain>::apply(function, inputs);
  } else if constexpr (requires { &Plain::operator(); }) {
    using Known = Signature<decltype(&Plain::operator())>;
    GPIPE_CHECK(
        Known::takes_all || inputs.size() >= Known::count,
        "the layer takes ",
        Known::count,
        " tensors and is given ",
        inputs.size());
    return Known::apply(function, inputs);
  } else {
    static_assert(
        is_callable<Plain>(),
        "gpipe: a layer is a torch::nn module, a factory of one, or callable with one to six "
        "tensors, or with std::vector<at::Tensor>");
    return call_with_all(function, inputs);
  }
}

/// Calls a module's forward. Tensors that are missing at the end are passed undefined, as the
/// default arguments of LibTorch's own modules are. A forward that takes other things too is called
/// with the tensors that there are, if its default arguments allow it.
template <class Module>
Tensors call_forward(Module& module, const Tensors& inputs) {
  auto forward =
      [&](auto&&... values) -> decltype(module.forward(std::forward<decltype(values)>(values)...)) {
    return module.forward(std::forward<decltype(values)>(values)...);
  };
  if constexpr (requires { requires Signature<decltype(&Module::forward)>::takes_tensors; }) {
    return Signature<decltype(&Module::forward)>::apply(forward, inputs);
  } else {
    static_assert(
        is_callable<decltype(forward)>(),
        "gpipe: the module has no forward over one to six tensors; say how to call it: "
        "layers.push_back(name, module, [](auto& m, at::Tensor x) {...})");
    return call_with_all(forward, inputs);
  }
}

}  // namespace gpipe::detail
