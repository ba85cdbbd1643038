#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "gpipe/core/pipeline.h"

/// Small networks with known numbers, and comparisons of bits, for the tests of the core.
namespace gpipe::testing {

inline constexpr plan::Rematerialize kModes[] = {
    plan::Rematerialize::Always, plan::Rematerialize::ExceptLast, plan::Rematerialize::Never};

inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined())
    return false;
  if (!a.defined())
    return true;
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type())
    return false;
  const at::Tensor x = a.detach().contiguous();
  const at::Tensor y = b.detach().contiguous();
  return x.nbytes() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

/// For EXPECT_TRUE: 0 ulp.
inline ::testing::AssertionResult bit_equal(const at::Tensor& a, const at::Tensor& b) {
  if (same_bits(a, b))
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "bits differ:\n" << a << "\nand\n" << b;
}

inline ::testing::AssertionResult bit_equal(
    const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  if (a.size() != b.size())
    return ::testing::AssertionFailure() << a.size() << " tensors and " << b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    if (auto result = bit_equal(a[i], b[i]); !result)
      return result << "\n(tensor " << i << ")";
  }
  return ::testing::AssertionSuccess();
}

/// For EXPECT_TRUE: REF-FULL, 1e-5 of the value in float32 and 1e-12 in float64; for values near 0, of the largest one.
inline ::testing::AssertionResult close(const at::Tensor& a, const at::Tensor& b) {
  const double tolerance = b.scalar_type() == at::kDouble ? 1e-12 : 1e-5;
  const double largest = b.abs().max().item<double>();
  if (a.sizes() == b.sizes() && at::allclose(a, b, tolerance, tolerance * largest))
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << a << "\nis not close to\n" << b;
}

/// The text of the exception that `work` throws; empty where it throws none.
template <class Work>
std::string error_of(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

inline at::Tensor doubles(const std::vector<double>& values) {
  return torch::tensor(values, torch::kDouble);
}

/// [N, 1] in float64.
inline at::Tensor column(const std::vector<double>& values) {
  return doubles(values).unsqueeze(1);
}

/// A Linear(1, 1) without bias, y = weight * x, in float64.
inline torch::nn::Linear scale(double weight) {
  torch::nn::Linear linear(torch::nn::LinearOptions(1, 1).bias(false));
  linear->to(torch::kDouble);
  at::NoGradGuard no_grad;
  linear->weight.fill_(weight);
  return linear;
}

inline at::Tensor whole_numbers(at::IntArrayRef sizes, uint64_t seed) {
  return torch::randint(-2, 3, sizes, at::detail::createCPUGenerator(seed), torch::kDouble);
}

inline at::Tensor normal(
    at::IntArrayRef sizes, uint64_t seed, c10::ScalarType dtype = torch::kDouble) {
  return torch::randn(sizes, at::detail::createCPUGenerator(seed), torch::kDouble).to(dtype);
}

/// Small whole numbers in all parameters, in float64: sums of products of them are exact.
template <class Module>
Module exact(Module module, uint64_t seed) {
  module->to(torch::kDouble);
  at::NoGradGuard no_grad;
  for (auto& parameter : module->parameters())
    parameter.copy_(whole_numbers(parameter.sizes(), seed++));
  return module;
}

/// Copies of all parameters' gradients, undefined where there is none.
inline std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& parameter : parameters)
    result.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
  return result;
}

inline std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& tensor : tensors)
    result.push_back(tensor.detach().clone());
  return result;
}

inline std::vector<at::Tensor> copies(const NamedTensors& tensors) {
  std::vector<at::Tensor> result;
  for (const auto& item : tensors)
    result.push_back(item.second.detach().clone());
  return result;
}

inline void drop_gradients(const std::vector<at::Tensor>& parameters) {
  for (const at::Tensor& parameter : parameters)
    parameter.mutable_grad() = at::Tensor();
}

}  // namespace gpipe::testing
