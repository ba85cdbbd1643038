#include "gpipe/core/loss.h"

#include <ATen/ATen.h>

#include <string>

#include "gpipe/base/error.h"

namespace gpipe {
namespace {

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined())
    return "an undefined tensor";
  return detail::concatenate("a tensor of shape ", tensor.sizes(), " and type ", tensor.dtype());
}

/// Number of valid targets; with class weights, their sum: what LibTorch's mean divides by. Targets that are class
/// probabilities all count.
double count_valid(
    const at::Tensor& target,
    int64_t ignore_index,
    const at::Tensor& class_weight,
    int64_t class_dim) {
  if (at::isFloatingType(target.scalar_type())) {
    return target.dim() > 1 ? static_cast<double>(target.numel() / target.size(class_dim)) : 1.0;
  }
  const at::Tensor valid = target.ne(ignore_index);
  if (!class_weight.defined())
    return valid.sum().item<double>();
  const at::Tensor weights =
      class_weight.to(at::kDouble).to(target.device()).take(target.to(at::kLong).where(valid, 0));
  return weights.mul_(valid).sum().item<double>();
}

}  // namespace

at::Tensor Loss::operator()(const Tensors& outputs, const Tensors& targets) const {
  at::Tensor loss = function_(outputs, targets);
  GPIPE_CHECK(loss.defined(), "[loss] the loss returns an undefined tensor; return a scalar");
  if (reduction_ == Reduction::PerRow) {
    GPIPE_CHECK(
        loss.dim() == 1 && loss.size(0) == outputs.at(0).size(0),
        "[loss] the loss returns ",
        describe(loss),
        " where one value for each of ",
        outputs.at(0).size(0),
        " rows is promised (Reduction::PerRow)");
    loss = loss.mean();
  }
  GPIPE_CHECK(
      at::isFloatingType(loss.scalar_type()),
      "[loss] the loss returns ",
      describe(loss),
      "; return a real floating-point number");
  GPIPE_CHECK(
      loss.numel() == 1,
      "[loss] the loss returns ",
      describe(loss),
      " and must return a scalar; reduce it, or say Reduction::PerRow where it returns one value a "
      "row");
  GPIPE_CHECK(
      loss.requires_grad() || !at::GradMode::is_enabled(),
      "[loss] no gradient can come from the loss: nothing that it is computed from requires one; "
      "are all layers frozen, or "
      "does the loss detach?");
  return loss;
}

Reduction Loss::reduction_from_name(const std::string& name) {
  if (name == "kSum")
    return Reduction::Sum;
  if (name == "kNone")
    return Reduction::PerRow;
  return Reduction::Mean;  // kMean, and kBatchMean: the sum over the number of rows
}

at::Tensor Loss::single(const Tensors& tensors, const char* what) {
  GPIPE_CHECK(
      tensors.size() == 1,
      "[loss] the loss takes one ",
      what,
      " and is given ",
      tensors.size(),
      "; let it take (const gpipe::Tensors& outputs, const gpipe::Tensors& targets)");
  return tensors.front();
}

void Loss::set_pairwise(std::function<at::Tensor(const at::Tensor&, const at::Tensor&)> function) {
  function_ = [function = std::move(function)](const Tensors& outputs, const Tensors& targets) {
    return function(single(outputs, "output"), single(targets, "target"));
  };
}

void Loss::set_valid_targets(int64_t ignore_index, at::Tensor class_weight, int64_t class_dim) {
  count_ =
      [ignore_index, class_dim, class_weight = std::move(class_weight)](const Tensors& targets) {
        return count_valid(single(targets, "target"), ignore_index, class_weight, class_dim);
      };
}

Loss CrossEntropyLoss(CrossEntropyOptions options) {
  auto function = [options](const at::Tensor& output, const at::Tensor& target) {
    const int64_t reduction = options.reduction == Reduction::Sum    ? at::Reduction::Sum
                              : options.reduction == Reduction::Mean ? at::Reduction::Mean
                                                                     : at::Reduction::None;
    const auto classes_second = [&](const at::Tensor& values) {
      return options.class_dim == 1 ? values : values.movedim(options.class_dim, 1);
    };
    at::Tensor loss = at::cross_entropy_loss(
        classes_second(output),
        at::isFloatingType(target.scalar_type()) ? classes_second(target) : target,
        options.weight,
        reduction,
        options.ignore_index,
        options.label_smoothing);
    return options.reduction == Reduction::PerRow && loss.dim() > 1 ? loss.flatten(1).mean(1)
                                                                    : loss;
  };
  Loss loss(function, options.reduction);
  if (options.reduction == Reduction::Mean)
    loss.set_valid_targets(options.ignore_index, options.weight, options.class_dim);
  return loss;
}

Loss MSELoss(Reduction reduction) {
  const int64_t mode = reduction == Reduction::Sum ? at::Reduction::Sum : at::Reduction::Mean;
  if (reduction == Reduction::PerRow) {
    return Loss(
        [](const at::Tensor& output, const at::Tensor& target) {
          return (output - target).square().flatten(1).mean(1);
        },
        reduction);
  }
  return Loss(
      [mode](const at::Tensor& output, const at::Tensor& target) {
        return at::mse_loss(output, target, mode);
      },
      reduction);
}

}  // namespace gpipe
