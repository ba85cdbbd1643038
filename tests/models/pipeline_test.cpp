#include "gpipe/core/pipeline.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "gpipe/core/loss.h"
#include "gpipe/models/registry.h"

namespace gpipe::models {
namespace {

struct Network {
  std::string name;
  ModelOptions options;
};

const Network kNetworks[] = {
    {"amoebanet-d",
     {{"num_layers", "3"},
      {"num_filters", "16"},
      {"num_classes", "10"},
      {"in_channels", "1"},
      {"image_size", "28"},
      {"stem_reductions", "0"},
      {"dropout", "0.2"}}},
    {"resnet-50",
     {{"num_classes", "10"},
      {"in_channels", "2"},
      {"image_size", "16"},
      {"width", "8"},
      {"small_images", "true"},
      {"num_blocks3", "2"}}},
    {"transformer",
     {{"num_layers", "3"},
      {"model_dimension", "32"},
      {"feed_forward_dimension", "64"},
      {"num_heads", "4"},
      {"vocabulary", "19"},
      {"sequence_length", "12"},
      {"dropout", "0.2"}}},
};

struct Run {
  int network;
  int num_stages;
  plan::Rematerialize rematerialize;
};

void PrintTo(const Run& run, std::ostream* stream) {
  for (char c : kNetworks[run.network].name)
    *stream << (c == '-' ? '_' : c);
  const char* const modes[] = {"Always", "ExceptLast", "Never"};
  *stream << "_K" << run.num_stages << "_" << modes[static_cast<int>(run.rematerialize)];
}

/// All that two steps leave behind.
NamedTensors train(const Run& run) {
  const auto& [name, model] = kNetworks[run.network];
  PipelineOptions options;
  options.num_stages = run.num_stages;
  options.num_micro_batches = 2;
  options.rematerialize = run.rematerialize;
  options.seed = 3;
  Pipeline pipeline(make_model(name, model), options);
  const ModelInput input = model_input(name, model);
  std::vector<int64_t> shape{32};  // 16 rows a micro-batch: fewer take other kernels
  shape.insert(shape.end(), input.row_shape.begin(), input.row_shape.end());
  CrossEntropyOptions cross_entropy;
  cross_entropy.class_dim = -1;
  const Loss loss = CrossEntropyLoss(cross_entropy);

  NamedTensors left;
  at::manual_seed(5);
  for (int step = 0; step < 2; ++step) {
    const at::Tensor value =
        input.is_tokens ? at::randint(input.num_classes, shape, at::kLong) : at::randn(shape);
    const at::Tensor target =
        input.is_tokens ? value.roll(-1, 1) : at::randint(input.num_classes, {shape[0]}, at::kLong);
    left.emplace_back("loss", pipeline.step(value, target, loss));
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : pipeline.parameters())
      parameter.sub_(parameter.grad(), 0.01);
  }
  for (const auto& [parameter, value] : pipeline.named_parameters()) {
    left.emplace_back(parameter, value);
    left.emplace_back(parameter + ".grad", value.grad());
  }
  for (const auto& buffer : pipeline.named_buffers())
    left.push_back(buffer);
  return left;
}

class ModelPipelineTest : public testing::TestWithParam<Run> {};

TEST_P(ModelPipelineTest, LeavesTheBitsOfOneStage) {
  const NamedTensors expected = train({GetParam().network, 1, plan::Rematerialize::Never});
  const NamedTensors actual = train(GetParam());
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].first, expected[i].first);
    EXPECT_TRUE(at::equal(actual[i].second, expected[i].second)) << actual[i].first;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Networks,
    ModelPipelineTest,
    testing::Values(
        Run{0, 1, plan::Rematerialize::Always},
        Run{0, 2, plan::Rematerialize::ExceptLast},
        Run{0, 5, plan::Rematerialize::Always},
        Run{1, 2, plan::Rematerialize::Always},
        Run{1, 3, plan::Rematerialize::Never},
        Run{2, 2, plan::Rematerialize::ExceptLast},
        Run{2, 5, plan::Rematerialize::Always}),
    testing::PrintToStringParamName());

}  // namespace
}  // namespace gpipe::models
