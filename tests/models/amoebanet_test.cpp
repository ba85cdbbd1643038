#include "gpipe/models/amoebanet.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <ostream>
#include <set>
#include <string>

#include "gpipe/base/error.h"
#include "tests/models/model_checks.h"

namespace gpipe::models {
namespace {

AmoebaNetOptions small() {
  AmoebaNetOptions options = AmoebaNetOptions::fashion_mnist();
  options.num_filters = 8;
  return options;
}

struct Published {
  int64_t num_layers;
  int64_t num_filters;
  int64_t num_parameters;
};

void PrintTo(const Published& published, std::ostream* stream) {
  *stream << "L" << published.num_layers << "_D" << published.num_filters;
}

class AmoebaNetCountTest : public testing::TestWithParam<Published> {};

TEST_P(AmoebaNetCountTest, MeetsThePublishedCount) {
  const auto [num_layers, num_filters, num_parameters] = GetParam();
  const Layers layers = amoebanet_d({.num_layers = num_layers, .num_filters = num_filters});
  EXPECT_EQ(layers.num_parameters(), num_parameters);
  EXPECT_EQ(layers.size(), num_layers + 6);
}

INSTANTIATE_TEST_SUITE_P(
    Table1,
    AmoebaNetCountTest,
    testing::Values(
        Published{18, 208, 81'505'540},      // printed as 81.5 M
        Published{18, 416, 319'024'120},     // 319.0 M
        Published{18, 544, 542'734'840},     // 542.7 M
        Published{36, 544, 1'055'832'376},   // 1.06 B
        Published{72, 512, 1'844'858'344}),  // 1.84 B
    testing::PrintToStringParamName());

TEST(AmoebaNetTest, CellsReturnTheirOutputAndThePreviousOne) {
  Layers layers = amoebanet_d(small());
  layers.build(1);
  Tensors values = layers[0].forward({at::rand({2, 1, 28, 28})});
  ASSERT_EQ(values.size(), 1U);
  EXPECT_EQ(values[0].sizes(), at::IntArrayRef({2, 8, 14, 14}));
  const std::vector<std::vector<int64_t>> outputs{
      {2, 32, 14, 14}, {2, 48, 7, 7}, {2, 64, 7, 7}, {2, 96, 4, 4}, {2, 128, 4, 4}};
  for (size_t cell = 0; cell < outputs.size(); ++cell) {
    const at::Tensor previous = values[0];
    values = layers[static_cast<int>(cell) + 1].forward(values);
    ASSERT_EQ(values.size(), 2U);
    EXPECT_EQ(values[0].sizes(), at::IntArrayRef(outputs[cell]));
    EXPECT_TRUE(values[1].is_same(previous));
  }
  EXPECT_EQ(layers[6].forward(values)[0].sizes(), at::IntArrayRef({2, 10}));
}

TEST(AmoebaNetTest, FullStemReducesAnImageEightTimes) {
  Layers layers = amoebanet_d({.num_layers = 3, .num_filters = 16, .num_classes = 5});
  layers.build(1);
  Tensors values{at::rand({2, 3, 64, 64})};
  for (int i = 0; i < 4; ++i)
    values = layers[i].forward(values);
  EXPECT_EQ(values[0].sizes(), at::IntArrayRef({2, 64, 8, 8}));
}

TEST(AmoebaNetTest, OddImagesFit) {
  for (int64_t size : {1, 7, 13, 15, 27}) {
    Layers layers = amoebanet_d(small());
    EXPECT_EQ(run(layers, {at::rand({2, 1, size, size})})[0].sizes(), at::IntArrayRef({2, 10}));
  }
}

TEST(AmoebaNetTest, GradientsReachEveryParameter) {
  Layers layers = amoebanet_d(small());
  expect_gradients_reach_all(layers, {at::rand({3, 1, 28, 28})});
}

TEST(AmoebaNetTest, LayersDoNotOverwriteTheirInputs) {
  Layers layers = amoebanet_d(small());
  expect_inputs_are_kept(layers, {at::randn({3, 1, 28, 28})});
}

TEST(AmoebaNetTest, RunsAgainToTheSameBits) {
  Layers layers = amoebanet_d(small());
  expect_same_bits_again(layers, {at::randn({3, 1, 28, 28})});
}

TEST(AmoebaNetTest, MemoryLayoutChangesRoundingOnly) {
  AmoebaNetOptions options = small();
  Layers channels_last = amoebanet_d(options);
  options.channels_last = false;
  Layers contiguous = amoebanet_d(options);
  const at::Tensor image = at::randn({4, 1, 28, 28});
  const at::Tensor expected = run(contiguous, {image})[0];
  EXPECT_TRUE(at::allclose(run(channels_last, {image})[0], expected, 1e-3, 1e-4));
}

TEST(AmoebaNetTest, ActivationsAreChannelsLastWhenAsked) {
  AmoebaNetOptions options = small();
  for (bool channels_last : {true, false}) {
    options.channels_last = channels_last;
    Layers layers = amoebanet_d(options);
    layers.build(1);
    Tensors values{at::rand({2, 1, 28, 28})};
    for (int i = 0; i + 1 < layers.size(); ++i) {
      values = layers[i].forward(values);
      EXPECT_EQ(values[0].is_contiguous(at::MemoryFormat::ChannelsLast), channels_last)
          << layers[i].name();
    }
  }
}

TEST(AmoebaNetTest, EvaluationUsesRunningStatistics) {
  Layers layers = amoebanet_d(small());
  expect_evaluation_is_row_by_row(layers, {at::randn({4, 1, 28, 28})});
}

TEST(AmoebaNetTest, RefusesOptionsThatDoNotFit) {
  EXPECT_REFUSED(amoebanet_d({.num_layers = 4}), "num_layers = 4 .* multiple of 3, such as 6");
  EXPECT_REFUSED(amoebanet_d({.num_layers = 0}), "num_layers = 0 .* such as 3");
  EXPECT_REFUSED(
      amoebanet_d({.num_filters = 209}), "num_filters = 209 .* multiple of 8, such as 216");
  EXPECT_REFUSED(amoebanet_d({.num_classes = 0}), "num_classes = 0");
  EXPECT_REFUSED(amoebanet_d({.stem_stride = 3}), "stem_stride = 3; use 1 or 2");
  EXPECT_REFUSED(amoebanet_d({.stem_reductions = -1}), "stem_reductions = -1; use 0 to 8");
  EXPECT_REFUSED(amoebanet_d({.dropout = 1}), "dropout = 1; use a probability");
}

}  // namespace
}  // namespace gpipe::models
