#include "gpipe/models/registry.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/models/model_checks.h"

namespace gpipe::models {
namespace {

ModelOptions small(const std::string& name) {
  if (name == "transformer")
    return {
        {"num_layers", "1"},
        {"model_dimension", "8"},
        {"feed_forward_dimension", "8"},
        {"num_heads", "2"},
        {"vocabulary", "9"},
        {"sequence_length", "4"}};
  ModelOptions options{{"num_classes", "7"}, {"in_channels", "1"}, {"image_size", "12"}};
  if (name == "amoebanet-d")
    options.insert(
        {{"num_layers", "3"},
         {"num_filters", "8"},
         {"stem_stride", "1"},
         {"stem_reductions", "0"}});
  else
    options.insert({{"width", "2"}, {"small_images", "true"}, {"num_blocks3", "1"}});
  return options;
}

TEST(RegistryTest, ListsTheModels) {
  EXPECT_EQ(
      model_names(),
      (std::vector<std::string>{"amoebanet-d", "resnet-50", "resnet-101", "transformer"}));
  for (const std::string& name : model_names())
    EXPECT_FALSE(model_description(name).empty());
}

TEST(RegistryTest, DefaultsAreThePapers) {
  EXPECT_EQ(make_model("amoebanet-d").num_parameters(), 81'505'540);
  EXPECT_EQ(make_model("resnet-50").num_parameters(), 25'557'032);
  EXPECT_EQ(make_model("resnet-101").num_parameters(), 44'549'160);
  EXPECT_EQ(make_model("transformer").num_parameters(), 282'182'912);
}

TEST(RegistryTest, EveryModelTakesItsInput) {
  for (const std::string& name : model_names()) {
    const ModelOptions options = small(name);
    const ModelInput input = model_input(name, options);
    std::vector<int64_t> shape{2};
    shape.insert(shape.end(), input.row_shape.begin(), input.row_shape.end());
    Layers layers = make_model(name, options);
    const at::Tensor value = input.is_tokens ? at::ones(shape, at::kLong) : at::rand(shape);
    EXPECT_EQ(run(layers, {value})[0].size(-1), input.num_classes) << name;
  }
}

TEST(RegistryTest, KeysSayTheirDefaults) {
  const std::vector<ModelKey> keys = model_keys("amoebanet-d");
  ASSERT_GE(keys.size(), 2U);
  EXPECT_EQ(keys[0].name, "num_layers");
  EXPECT_EQ(keys[0].default_value, "18");
  for (const std::string& name : model_names()) {
    ModelOptions defaults;
    for (const ModelKey& key : model_keys(name)) {
      EXPECT_FALSE(key.meaning.empty()) << key.name;
      EXPECT_TRUE(defaults.emplace(key.name, key.default_value).second) << key.name;
    }
    EXPECT_EQ(
        make_model(name, defaults).num_parameters_per_layer(),
        make_model(name).num_parameters_per_layer());
  }
}

TEST(RegistryTest, RefusesAnUnknownModelWithTheNearestName) {
  EXPECT_REFUSED(
      make_model("amoebanet_d"), "unknown model 'amoebanet_d'.*did you mean .amoebanet-d");
  EXPECT_REFUSED(model_keys("resnet50"), "did you mean .resnet-50");
  EXPECT_REFUSED(model_input("zzz"), "unknown model 'zzz'; the models are amoebanet-d, resnet-50");
}

TEST(RegistryTest, RefusesAnUnknownKeyWithTheNearestName) {
  EXPECT_REFUSED(
      make_model("amoebanet-d", {{"num_filter", "16"}}),
      "no option 'num_filter'.*did you mean .num_filters");
  EXPECT_REFUSED(
      make_model("transformer", {{"in_channels", "1"}}), "no option 'in_channels'.*num_heads");
}

TEST(RegistryTest, RefusesAValueThatDoesNotRead) {
  EXPECT_REFUSED(
      make_model("resnet-50", {{"width", "wide"}}), "width = 'wide' is not a whole number");
  EXPECT_REFUSED(make_model("resnet-50", {{"width", "64x"}}), "'64x' is not a whole number");
  EXPECT_REFUSED(make_model("resnet-50", {{"width", ""}}), "'' is not a whole number");
  EXPECT_REFUSED(make_model("transformer", {{"dropout", "0,1"}}), "'0,1' is not a number");
  EXPECT_REFUSED(
      make_model("resnet-50", {{"small_images", "yes"}}), "'yes' is neither true nor false");
  EXPECT_REFUSED(make_model("amoebanet-d", {{"num_layers", "5"}}), "multiple of 3");
}

}  // namespace
}  // namespace gpipe::models
