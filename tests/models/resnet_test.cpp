#include "gpipe/models/resnet.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/models/model_checks.h"

namespace gpipe::models {
namespace {

ResNetOptions small() {
  return {
      .num_blocks = {1, 2, 1, 1},
      .width = 4,
      .num_classes = 6,
      .in_channels = 2,
      .small_images = true};
}

std::vector<std::string> names(const Layers& layers) {
  std::vector<std::string> all;
  for (int i = 0; i < layers.size(); ++i)
    all.push_back(layers[i].name());
  return all;
}

TEST(ResNetTest, MeetsThePublishedCounts) {
  EXPECT_EQ(resnet_50().num_parameters(), 25'557'032);
  EXPECT_EQ(resnet_101().num_parameters(), 44'549'160);
}

TEST(ResNetTest, NamesAreTorchvisions) {
  Layers layers =
      resnet({.num_blocks = {1, 2, 1, 1}, .width = 4, .num_classes = 6, .in_channels = 2});
  EXPECT_EQ(
      names(layers),
      (std::vector<std::string>{
          "conv1",
          "bn1",
          "maxpool",
          "layer1.0",
          "layer2.0",
          "layer2.1",
          "layer3.0",
          "layer4.0",
          "avgpool",
          "fc"}));
  layers.build(1);
  std::vector<std::string> parameters;
  for (const auto& parameter : layers[4].module()->named_parameters())
    parameters.push_back(layers[4].name() + "." + parameter.key());
  EXPECT_THAT(
      parameters,
      testing::UnorderedElementsAre(
          "layer2.0.conv1.weight",
          "layer2.0.bn1.weight",
          "layer2.0.bn1.bias",
          "layer2.0.conv2.weight",
          "layer2.0.bn2.weight",
          "layer2.0.bn2.bias",
          "layer2.0.conv3.weight",
          "layer2.0.bn3.weight",
          "layer2.0.bn3.bias",
          "layer2.0.downsample.0.weight",
          "layer2.0.downsample.1.weight",
          "layer2.0.downsample.1.bias"));
}

TEST(ResNetTest, BlocksHalveTheImage) {
  Layers layers = resnet(small());
  layers.build(1);
  const std::vector<std::vector<int64_t>> sizes{
      {2, 4, 16, 16},
      {2, 4, 16, 16},
      {2, 4, 16, 16},
      {2, 16, 16, 16},
      {2, 32, 8, 8},
      {2, 32, 8, 8},
      {2, 64, 4, 4},
      {2, 128, 2, 2},
      {2, 128},
      {2, 6}};
  Tensors values{at::rand({2, 2, 16, 16})};
  for (size_t i = 0; i < sizes.size(); ++i) {
    values = layers[static_cast<int>(i)].forward(values);
    EXPECT_EQ(values[0].sizes(), at::IntArrayRef(sizes[i])) << layers[static_cast<int>(i)].name();
  }
}

TEST(ResNetTest, LargeStemReducesAnImageFourTimes) {
  ResNetOptions options = small();
  options.small_images = false;
  Layers layers = resnet(options);
  layers.build(1);
  Tensors values{at::rand({2, 2, 64, 64})};
  for (int i = 0; i < 3; ++i)
    values = layers[i].forward(values);
  EXPECT_EQ(values[0].sizes(), at::IntArrayRef({2, 4, 16, 16}));
}

TEST(ResNetTest, GradientsReachEveryParameter) {
  Layers layers = resnet(small());
  expect_gradients_reach_all(layers, {at::rand({3, 2, 16, 16})});
}

TEST(ResNetTest, LayersDoNotOverwriteTheirInputs) {
  Layers layers = resnet(small());
  expect_inputs_are_kept(layers, {at::randn({3, 2, 16, 16})});
}

TEST(ResNetTest, RunsAgainToTheSameBits) {
  Layers layers = resnet(small());
  expect_same_bits_again(layers, {at::randn({3, 2, 16, 16})});
}

TEST(ResNetTest, MemoryLayoutChangesRoundingOnly) {
  ResNetOptions options = small();
  Layers channels_last = resnet(options);
  options.channels_last = false;
  Layers contiguous = resnet(options);
  const at::Tensor image = at::randn({4, 2, 16, 16});
  const at::Tensor expected = run(contiguous, {image})[0];
  EXPECT_TRUE(at::allclose(run(channels_last, {image})[0], expected, 1e-3, 1e-4));
}

TEST(ResNetTest, EvaluationUsesRunningStatistics) {
  Layers layers = resnet(small());
  expect_evaluation_is_row_by_row(layers, {at::randn({4, 2, 16, 16})});
}

TEST(ResNetTest, RefusesCountsBelowOne) {
  EXPECT_REFUSED(resnet({.num_blocks = {3, 0, 6, 3}}), "num_blocks holds 0; .* at least 1");
  EXPECT_REFUSED(resnet_50({.width = 0}), "width = 0");
}

}  // namespace
}  // namespace gpipe::models
