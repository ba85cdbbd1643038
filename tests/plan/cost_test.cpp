#include "gpipe/plan/cost.h"

#include "gpipe/plan/stage_cost.h"
#include "tests/plan/testing.h"

namespace gpipe::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

CostTable example_table() {
  CostTable table;
  table.micro_batch_rows = 4;
  table.input_bytes = 40;
  table.layers = {
      {"stem", 0.125, 0.25, 10, 40, 100, 1000},
      {"block \"a\"\n\xc3\xa9", 1e-7, 2.5, (1LL << 53) + 1, 0, 200, 2000},
      {"head", 0.5, 0.75, 30, 120, 8, 0}};
  return table;
}

TEST(CostTableTest, ReadsBackWhatIsWritten) {
  CostTable table = example_table();
  EXPECT_EQ(cost_table_from_json(to_json(table)), table);
  EXPECT_EQ(cost_table_from_json(to_json(CostTable())), CostTable());
}

TEST(CostTableTest, OmittedMembersHaveTheirDefaults) {
  CostTable table = cost_table_from_json(R"({"layers": [{"name": "a"}]})");
  CostTable expected;
  expected.layers = {LayerCost{.name = "a"}};
  EXPECT_EQ(table, expected);
}

TEST(CostTableTest, ScalesTimesAndActivationsButNotParameters) {
  CostTable scaled = scaled_to_rows(example_table(), 6);
  EXPECT_EQ(scaled.micro_batch_rows, 6);
  EXPECT_EQ(scaled.input_bytes, 60);
  EXPECT_EQ(scaled.layers[0], (LayerCost{"stem", 0.1875, 0.375, 10, 40, 150, 1500}));
  EXPECT_EQ(scaled_to_rows(scaled, 4).layers[2], example_table().layers[2]);
  EXPECT_THAT(error_of([] { scaled_to_rows(example_table(), 0); }), HasSubstr("0 rows"));
}

struct BadTable {
  const char* name;
  const char* json;
  const char* needed_text;
};

class BadTableTest : public testing::TestWithParam<BadTable> {};

TEST_P(BadTableTest, IsRefused) {
  EXPECT_THAT(
      error_of([] { cost_table_from_json(GetParam().json); }),
      AllOf(HasSubstr("[cost]"), HasSubstr(GetParam().needed_text)));
}

INSTANTIATE_TEST_SUITE_P(
    Tables,
    BadTableTest,
    testing::Values(
        BadTable{"NotJson", "{\"layers\": [\n1,]}", "line 2"},
        BadTable{"NotAnObject", "[]", "the cost table is []"},
        BadTable{"NoLayers", "{}", "no array `layers`"},
        BadTable{"LayersNoArray", R"({"layers": 3})", "no array `layers`"},
        BadTable{"LayerNoObject", R"({"layers": [3]})", "layers[0] is 3"},
        BadTable{
            "LayerWithoutName", R"({"layers": [{"name": "a"}, {}]})", "layers[1] has no `name`"},
        BadTable{
            "UnknownMember",
            R"({"layers": [{"name": "a", "foward_seconds": 1}]})",
            "unknown member `foward_seconds` of layers[0]; did you mean `forward_seconds`?"},
        BadTable{
            "UnknownTableMember",
            R"({"layers": [], "microbatch_rows": 1})",
            "did you mean `micro_batch_rows`?"},
        BadTable{
            "NegativeTime",
            R"({"layers": [{"name": "a", "forward_seconds": -1}]})",
            "layers[0].forward_seconds is -1"},
        BadTable{
            "TextForTime",
            R"({"layers": [{"name": "a", "forward_seconds": "1"}]})",
            "layers[0].forward_seconds is \"1\""},
        BadTable{
            "FractionOfBytes",
            R"({"layers": [{"name": "a", "output_bytes": 1.5}]})",
            "layers[0].output_bytes is 1.5"},
        BadTable{
            "TooManyBytes",
            R"({"layers": [{"name": "a", "output_bytes": 18446744073709551615}]})",
            "layers[0].output_bytes is 18446744073709551615"},
        BadTable{"NumberForName", R"({"layers": [{"name": 1}]})", "layers[0].name is 1"},
        BadTable{"NoRows", R"({"layers": [], "micro_batch_rows": 0})", "micro_batch_rows is 0"}),
    [](const auto& bad) { return bad.param.name; });

TEST(LinkCostTest, IsLatencyAndTransfer) {
  EXPECT_DOUBLE_EQ((LinkCost{100, 0.5}).seconds(50), 1);
  EXPECT_EQ(LinkCost().seconds(1 << 30), 0);
}

TEST(StageCostTest, SumsLayersAndDividesBySpeed) {
  std::vector<DeviceSpec> devices = {{"slow", 0, 0.5}, {"fast", 0, 2}};
  auto stages = stage_costs(example_table(), Partition{{0, 1, 3}}, devices);
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_DOUBLE_EQ(stages[0].forward_seconds, 0.25);
  EXPECT_DOUBLE_EQ(stages[0].recompute_seconds, 0.25);
  EXPECT_DOUBLE_EQ(stages[0].backward_seconds, 0.5);
  EXPECT_DOUBLE_EQ(stages[0].backward_input_seconds + stages[0].backward_weight_seconds, 0.5);
  EXPECT_EQ(stages[0].input_bytes, 40);
  EXPECT_EQ(stages[0].output_bytes, 100);
  EXPECT_EQ(stages[0].activation_bytes, 1000);
  EXPECT_DOUBLE_EQ(stages[1].forward_seconds, (1e-7 + 0.5) / 2);
  EXPECT_EQ(stages[1].input_bytes, 100);
  EXPECT_EQ(stages[1].output_bytes, 8);
  EXPECT_EQ(stages[1].activation_bytes, 2000);
}

TEST(StageCostTest, RefusesWhatDoesNotFitTogether) {
  EXPECT_THAT(
      error_of([] { stage_costs(example_table(), Partition{{0, 2}}); }),
      HasSubstr("partition has 2 layers, but the cost table 3"));
  EXPECT_THAT(
      error_of([] { stage_costs(example_table(), Partition{{0, 1, 3}}, {DeviceSpec()}); }),
      HasSubstr("1 devices for 2 stages"));
  EXPECT_THAT(
      error_of([] { stage_costs(example_table(), Partition{{0, 3}}, {{"off", 0, 0}}); }),
      HasSubstr("stage 0 has speed 0"));
}

}  // namespace
}  // namespace gpipe::plan
