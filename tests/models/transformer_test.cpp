#include "gpipe/models/transformer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/models/model_checks.h"

namespace gpipe::models {
namespace {

TransformerOptions small() {
  return {
      .num_layers = 2,
      .model_dimension = 16,
      .feed_forward_dimension = 24,
      .num_heads = 4,
      .vocabulary = 11};
}

at::Tensor ids(int64_t batch, int64_t positions) {
  return at::arange(batch * positions).mul(7).remainder(11).view({batch, positions});
}

TEST(TransformerTest, MeetsTheCountsOfTable1) {
  EXPECT_EQ(transformer({.num_layers = 3}).num_parameters(), 282'182'912);      // 282.2 M
  EXPECT_EQ(transformer({.num_layers = 13}).num_parameters(), 785'765'632);     // 785.8 M
  EXPECT_EQ(transformer({.num_layers = 103}).num_parameters(), 5'318'010'112);  // 5.3 B
}

TEST(TransformerTest, CountFollowsTheFormula) {
  const int64_t d = 16, f = 24, v = 11, layers = 2;
  EXPECT_EQ(
      transformer(small()).num_parameters(),
      layers * (4 * d * d + 2 * d * f + 9 * d + f) + 2 * v * d + v + 2 * d);
}

TEST(TransformerTest, ReturnsLogitsForEachPosition) {
  Layers layers = transformer(small());
  EXPECT_EQ(layers.size(), 4);
  layers.build(1);
  const Tensors embedded = layers[0].forward({ids(3, 5)});
  EXPECT_EQ(embedded[0].sizes(), at::IntArrayRef({3, 5, 16}));
  EXPECT_EQ(run(layers, {ids(3, 5)})[0].sizes(), at::IntArrayRef({3, 5, 11}));
  EXPECT_EQ(run(layers, {ids(2, 9)})[0].sizes(), at::IntArrayRef({2, 9, 11}));
}

TEST(TransformerTest, LaterTokensDoNotReachEarlierPositions) {
  Layers layers = transformer(small());
  const at::Tensor before = ids(2, 6);
  at::Tensor after = before.clone();
  after.slice(1, 4).add_(1).remainder_(11);
  const at::Tensor difference = run(layers, {before})[0] - run(layers, {after})[0];
  EXPECT_TRUE(difference.slice(1, 0, 4).abs().max().item<float>() < 1e-6F);
  EXPECT_TRUE(difference.slice(1, 4).abs().max().item<float>() > 1e-3F);
}

TEST(TransformerTest, GradientsReachEveryParameter) {
  Layers layers = transformer(small());
  expect_gradients_reach_all(layers, {ids(3, 11)});
}

TEST(TransformerTest, LayersDoNotOverwriteTheirInputs) {
  Layers layers = transformer(small());
  expect_inputs_are_kept(layers, {ids(3, 5)});
}

TEST(TransformerTest, RunsAgainToTheSameBits) {
  Layers layers = transformer(small());
  expect_same_bits_again(layers, {ids(3, 5)});
}

TEST(TransformerTest, DropsOnlyInTraining) {
  TransformerOptions options = small();
  options.dropout = 0.5;
  Layers layers = transformer(options);
  const at::Tensor trained = run(layers, {ids(3, 5)})[0];
  EXPECT_FALSE(at::equal(run(layers, {ids(3, 5)})[0], trained));
  set_training(layers, false);
  const at::Tensor evaluated = run(layers, {ids(3, 5)})[0];
  EXPECT_TRUE(at::equal(run(layers, {ids(3, 5)})[0], evaluated));
  Layers without = transformer(small());
  EXPECT_TRUE(at::equal(run(without, {ids(3, 5)})[0], evaluated));
}

TEST(TransformerTest, FeedForwardWeightsStartSmallerInDeepModels) {
  TransformerOptions options = small();
  Layers shallow = transformer(options);
  options.num_layers = 8;
  Layers deep = transformer(options);
  shallow.build(1);
  deep.build(1);
  const auto weight = [](const Layers& layers, const char* name) {
    return layers[1].module()->named_parameters()[name];
  };
  for (const char* name : {"expand.weight", "contract.weight"})
    EXPECT_TRUE(at::allclose(weight(deep, name) * 4, weight(shallow, name))) << name;
  EXPECT_TRUE(
      at::equal(weight(deep, "attention.input.weight"), weight(shallow, "attention.input.weight")));
}

TEST(TransformerTest, ClipsLogits) {
  TransformerOptions options = small();
  options.clip_logits = 0.25;
  Layers layers = transformer(options);
  EXPECT_FLOAT_EQ(run(layers, {ids(3, 5)})[0].abs().max().item<float>(), 0.25F);
}

TEST(TransformerTest, PositionsAreSinesAndCosines) {
  const at::Tensor positions = sinusoidal_positions(5, 8, at::kDouble);
  EXPECT_EQ(positions.sizes(), at::IntArrayRef({5, 8}));
  EXPECT_EQ(positions.scalar_type(), at::kDouble);
  EXPECT_NEAR(positions[3][0].item<double>(), std::sin(3), 1e-6);
  EXPECT_NEAR(positions[3][4].item<double>(), std::cos(3), 1e-6);
  EXPECT_NEAR(positions[3][3].item<double>(), std::sin(3e-4), 1e-6);
}

TEST(TransformerTest, RefusesOptionsThatDoNotFit) {
  EXPECT_REFUSED(transformer({.num_layers = 0}), "num_layers = 0");
  EXPECT_REFUSED(transformer({.model_dimension = 33}), "model_dimension = 33; use an even number");
  EXPECT_REFUSED(
      transformer({.model_dimension = 64, .num_heads = 5}),
      "num_heads = 5 does not divide model_dimension = 64");
  EXPECT_REFUSED(transformer({.vocabulary = 0}), "vocabulary = 0");
  EXPECT_REFUSED(transformer({.dropout = -0.5}), "dropout = -0.5; use a probability");
  EXPECT_REFUSED(transformer({.clip_logits = -1}), "clip_logits = -1");
}

}  // namespace
}  // namespace gpipe::models
