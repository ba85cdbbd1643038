#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <type_traits>
#include <utility>

/// Graph nodes of our own. LibTorch holds nodes by shared_ptr up to 2.14 or so, and by intrusive_ptr later; NodePtr is
/// whichever this one has.
namespace gpipe::detail {

using Node = torch::autograd::Node;
using Edge = torch::autograd::Edge;
using NodePtr = decltype(Edge::function);

template <class N, class... Arguments>
NodePtr make_node(Arguments&&... arguments) {
  if constexpr (std::is_same_v<NodePtr, std::shared_ptr<Node>>) {
    return std::make_shared<N>(std::forward<Arguments>(arguments)...);
  } else {
    return c10::make_intrusive<N>(std::forward<Arguments>(arguments)...);
  }
}

}  // namespace gpipe::detail
