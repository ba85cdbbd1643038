#include "gpipe/models/convolution.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "gpipe/models/amoebanet_cell.h"

namespace gpipe::models {
namespace {

void expect_close(const at::Tensor& value, const at::Tensor& expected) {
  ASSERT_EQ(value.sizes(), expected.sizes());
  EXPECT_TRUE(at::allclose(value, expected, 1e-4, 1e-5));
}

TEST(ConvolutionTest, PointwiseEqualsConv2d) {
  for (int64_t stride : {1, 2}) {
    Convolution convolution(ConvolutionOptions{6, 5, 1, 1, stride});
    const at::Tensor weight = convolution->parameters()[0];
    const at::Tensor input = at::randn({2, 6, 7, 4}).contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor output = convolution(input);
    expect_close(output, at::conv2d(input, weight, {}, stride));
    EXPECT_TRUE(output.is_contiguous(at::MemoryFormat::ChannelsLast));
    expect_close(convolution(input.contiguous()), output);
  }
}

TEST(ConvolutionTest, PointwiseHasTheGradientsOfConv2d) {
  Convolution convolution(ConvolutionOptions{6, 5, 1, 1, 2});
  at::Tensor weight = convolution->parameters()[0];
  const at::Tensor input = at::randn({2, 6, 7, 4}).requires_grad_();
  const auto gradients = [&](const at::Tensor& output) {
    weight.mutable_grad().reset();
    input.mutable_grad().reset();
    output.square().sum().backward();
    return std::pair(weight.grad().clone(), input.grad().clone());
  };
  const auto [of_weight, of_input] =
      gradients(convolution(input.contiguous(at::MemoryFormat::ChannelsLast)));
  const auto [expected_of_weight, expected_of_input] = gradients(at::conv2d(input, weight, {}, 2));
  expect_close(of_weight, expected_of_weight);
  expect_close(of_input, expected_of_input);
}

TEST(ConvolutionTest, StrideGoesAlongTheKernel) {
  const at::Tensor input = at::randn({1, 2, 9, 9});
  EXPECT_EQ(
      Convolution(ConvolutionOptions{2, 3, 1, 7, 2})(input).sizes(), at::IntArrayRef({1, 3, 9, 5}));
  EXPECT_EQ(
      Convolution(ConvolutionOptions{2, 3, 7, 1, 2})(input).sizes(), at::IntArrayRef({1, 3, 5, 9}));
  EXPECT_EQ(
      Convolution(ConvolutionOptions{2, 3, 3, 3})(input).sizes(), at::IntArrayRef({1, 3, 9, 9}));
}

TEST(ConvolutionTest, ConvertsToChannelsLast) {
  for (int64_t channels : {1, 3}) {
    Convolution convolution(ConvolutionOptions{channels, 4, 3, 3, 1, true});
    EXPECT_TRUE(
        convolution(at::randn({2, channels, 5, 5})).is_contiguous(at::MemoryFormat::ChannelsLast));
  }
}

TEST(ConvolutionTest, CloneHasItsOwnParameters) {
  ConvolutionNorm module(ConvolutionOptions{2, 3, 3, 3});
  const auto copy = module->clone();
  ASSERT_EQ(copy->parameters().size(), module->parameters().size());
  for (size_t i = 0; i < copy->parameters().size(); ++i) {
    EXPECT_TRUE(at::equal(copy->parameters()[i], module->parameters()[i]));
    EXPECT_FALSE(copy->parameters()[i].is_same(module->parameters()[i]));
  }
}

TEST(FactorizedReductionTest, ReadsEvenAndOddPixels) {
  FactorizedReduction reduction(2, 4);
  for (int64_t size : {5, 6}) {
    at::Tensor input = at::rand({2, 2, size, size}).requires_grad_();
    const at::Tensor output = reduction(input);
    EXPECT_EQ(output.sizes(), at::IntArrayRef({2, 4, 3, 3}));
    output.square().sum().backward();
    EXPECT_TRUE(input.grad()[0][0][0][0].item<float>() != 0);
    EXPECT_TRUE(input.grad()[0][0][1][1].item<float>() != 0);
    EXPECT_TRUE(input.grad()[0][0][0][1].item<float>() == 0);
  }
}

}  // namespace
}  // namespace gpipe::models
