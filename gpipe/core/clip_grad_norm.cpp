#include <ATen/ATen.h>

#include <cmath>
#include <vector>

#include "gpipe/base/error.h"
#include "gpipe/core/pipeline.h"

namespace gpipe {
namespace {

/// The values of a gradient: of a sparse one those that are there, each place once.
at::Tensor values_of(const at::Tensor& parameter) {
  at::Tensor& gradient = parameter.mutable_grad();
  if (!gradient.is_sparse())
    return gradient;
  gradient = gradient.coalesce();
  return gradient.values();
}

/// The norms of the gradients of a stage, in layer order; parameters without a gradient are left out.
std::vector<double> norms_of(const std::vector<at::Tensor>& parameters, double norm_type) {
  std::vector<double> norms;
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.grad().defined())
      continue;
    norms.push_back(at::linalg_vector_norm(values_of(parameter), norm_type).item<double>());
  }
  return norms;
}

/// The norm of the norms, added in order.
double combine(const std::vector<std::vector<double>>& norms_by_stage, double norm_type) {
  double total = 0;
  for (const auto& norms : norms_by_stage) {
    for (double norm : norms) {
      if (std::isinf(norm_type)) {
        total = std::isnan(norm) || norm > total ? norm : total;
      } else {
        total += std::pow(norm, norm_type);
      }
    }
  }
  return std::isinf(norm_type) ? total : std::pow(total, 1 / norm_type);
}

}  // namespace

double Pipeline::clip_grad_norm(double max_norm, double norm_type) {
  GPIPE_CHECK(max_norm >= 0, "[clip] a maximal norm of ", max_norm, "; use 0 or more");
  GPIPE_CHECK(norm_type > 0, "[clip] a norm of type ", norm_type, "; use 1, 2, ... or infinity");
  std::vector<std::vector<double>> norms(static_cast<size_t>(options().num_stages));
  for_each_stage([&](int stage, const std::vector<at::Tensor>& parameters) {
    at::NoGradGuard no_grad;
    norms[static_cast<size_t>(stage)] = norms_of(parameters, norm_type);
  });
  const double total = combine(norms, norm_type);
  const double factor = max_norm / (total + 1e-6);
  if (factor >= 1)
    return total;
  for_each_stage([&](int, const std::vector<at::Tensor>& parameters) {
    at::NoGradGuard no_grad;
    for (const at::Tensor& parameter : parameters) {
      if (parameter.grad().defined())
        parameter.mutable_grad().mul_(factor);
    }
  });
  return total;
}

}  // namespace gpipe
