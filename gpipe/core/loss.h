#pragma once

#include <torch/enum.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "gpipe/core/tensors.h"

namespace gpipe {

/// How a loss over the rows of a micro-batch becomes the loss of the mini-batch.
enum class Reduction {
  Mean,    ///< a scalar, the mean over its terms: weighted by the micro-batch's share of the terms
  Sum,     ///< a scalar, the sum over its terms: added as it is
  PerRow,  ///< one value a row, [rows]: the mean over all rows of the mini-batch
};

/// What is trained for: a function of a micro-batch's outputs and targets, and how micro-batches
/// are weighed, so that the step's loss and gradients are those of the whole mini-batch however it
/// is split.
///
/// ```cpp
/// gpipe::Loss(torch::nn::MSELoss())  // reduction and ignored targets are read from its options
/// gpipe::Loss([](at::Tensor y, at::Tensor t) { return (y - t).abs().mean(); })
/// gpipe::Loss(my_function, gpipe::Reduction::Sum)
/// ```
class Loss {
 public:
  using Function = std::function<at::Tensor(const Tensors& outputs, const Tensors& targets)>;
  /// Number of terms in the mean: rows, or valid targets. Called with a micro-batch's targets, on
  /// the caller's thread.
  using Count = std::function<double(const Tensors& targets)>;

  /// `function(output, target)` over tensors, or over `Tensors` where there are several. `count` is
  /// for a mean over fewer or more terms than rows (other reductions do not use it); the default
  /// counts the rows of the micro-batch.
  template <class F>
    requires(!std::is_same_v<std::decay_t<F>, Loss>)
  Loss(F function, Reduction reduction = Reduction::Mean, Count count = {})
      : reduction_(reduction), count_(std::move(count)) {
    set(std::move(function));
  }

  Reduction reduction() const { return reduction_; }
  const Count& count() const { return count_; }

  /// The loss of a micro-batch: a scalar (0-dim or one element), for PerRow the mean of its rows.
  /// Throws Error where the function returns anything else, or a tensor that no gradient can come
  /// from.
  at::Tensor operator()(const Tensors& outputs, const Tensors& targets) const;

 private:
  template <class F>
  void set(F function) {
    if constexpr (requires { function->options.reduction(); }) {
      reduction_ = reduction_of(function->options.reduction());
      // Only a mean over the valid targets is weighed by their number.
      if constexpr (requires { function->options.ignore_index(); }) {
        if (reduction_ == Reduction::Mean && !count_)
          set_valid_targets(function->options.ignore_index(), function->options.weight());
      }
    }
    auto shared = std::make_shared<F>(std::move(function));
    if constexpr (requires(at::Tensor tensor) { (*shared)->forward(tensor, tensor); }) {
      set_pairwise([shared](const at::Tensor& output, const at::Tensor& target) {
        return (*shared)->forward(output, target);
      });
    } else if constexpr (requires(const Tensors& tensors) {
                           (*shared)->forward(tensors, tensors);
                         }) {
      function_ = [shared](const Tensors& outputs, const Tensors& targets) {
        return (*shared)->forward(outputs, targets);
      };
    } else if constexpr (std::is_invocable_v<F&, at::Tensor, at::Tensor>) {
      set_pairwise([shared](const at::Tensor& output, const at::Tensor& target) {
        return (*shared)(output, target);
      });
    } else {
      static_assert(
          std::is_invocable_v<F&, const Tensors&, const Tensors&>,
          "gpipe: a loss is called with (at::Tensor output, at::Tensor target) or with (Tensors "
          "outputs, Tensors targets)");
      function_ = [shared](const Tensors& outputs, const Tensors& targets) {
        return (*shared)(outputs, targets);
      };
    }
  }

  /// LibTorch's option types are variants of kMean, kSum, kNone.
  template <class Option>
  static Reduction reduction_of(const Option& option) {
    return reduction_from_name(torch::enumtype::get_enum_name(option));
  }
  static Reduction reduction_from_name(const std::string& name);
  static at::Tensor single(const Tensors& tensors, const char* what);
  void set_pairwise(std::function<at::Tensor(const at::Tensor&, const at::Tensor&)> function);
  /// Counts targets other than `ignore_index`, each by its class's weight.
  void set_valid_targets(int64_t ignore_index, at::Tensor class_weight, int64_t class_dim = 1);

  Function function_;
  Reduction reduction_;
  Count count_;

  friend Loss CrossEntropyLoss(struct CrossEntropyOptions options);
};

struct CrossEntropyOptions {
  double label_smoothing = 0;
  /// Targets of this value count for nothing, in the loss and in the mean.
  int64_t ignore_index = -100;
  /// Per-class weights, [classes], or undefined.
  at::Tensor weight = {};
  /// The dimension of the outputs that holds the classes: 1 as in LibTorch ([rows, classes, ...]),
  /// -1 for a language model ([rows, sequence, classes]).
  int64_t class_dim = 1;
  Reduction reduction = Reduction::Mean;
};

/// Cross entropy of logits with integer targets (or class probabilities) as
/// torch::nn::functional::cross_entropy has it. The mean is over the valid targets of the whole
/// mini-batch.
Loss CrossEntropyLoss(CrossEntropyOptions options = {});

/// Mean (or summed) squared error.
Loss MSELoss(Reduction reduction = Reduction::Mean);

}  // namespace gpipe
