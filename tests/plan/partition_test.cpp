#include "gpipe/plan/partition.h"

#include <algorithm>
#include <limits>

#include "tests/plan/testing.h"

namespace gpipe::plan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

double slowest(const PartitionProblem& problem, const Partition& partition) {
  auto times = stage_times(problem, partition);
  return *std::max_element(times.begin(), times.end());
}

PartitionProblem problem_of(std::vector<double> costs, int num_stages) {
  PartitionProblem problem;
  problem.costs = std::move(costs);
  problem.num_stages = num_stages;
  return problem;
}

TEST(PartitionTest, KnowsItsStagesAndLayers) {
  Partition partition{{0, 2, 3, 7}};
  EXPECT_EQ(partition.num_stages(), 3);
  EXPECT_EQ(partition.num_layers(), 7);
  EXPECT_EQ(partition.begin_layer(2), 3);
  EXPECT_EQ(partition.end_layer(1), 3);
  EXPECT_THAT(layers_per_stage(partition), ElementsAre(2, 1, 4));
  std::vector<int> stages;
  for (int layer = 0; layer < 7; ++layer)
    stages.push_back(partition.stage_of(layer));
  EXPECT_THAT(stages, ElementsAre(0, 0, 1, 2, 2, 2, 2));
  EXPECT_THROW(partition.stage_of(7), Error);
  EXPECT_THROW(partition.stage_of(-1), Error);
}

TEST(PartitionTest, GivesEveryStageALayer) {
  PartitionProblem problem = problem_of({100, 1, 1, 1, 1, 1, 1, 1}, 4);
  Partition partition = make_partition(problem);
  EXPECT_EQ(slowest(problem, partition), 100);
  EXPECT_THAT(layers_per_stage(partition), ElementsAre(1, 2, 2, 3));
}

TEST(PartitionTest, MinimizesTheSlowestStage) {
  PartitionProblem problem = problem_of({1, 2, 3, 4, 5, 6, 7, 8, 9}, 3);
  Partition partition = make_partition(problem);
  EXPECT_THAT(partition.boundaries, ElementsAre(0, 5, 7, 9));
  EXPECT_THAT(stage_times(problem, partition), ElementsAre(15, 13, 17));
}

/// 0.1 has no exact binary form; sums of 2 and 3 must still compare as equal.
TEST(PartitionTest, EqualLayersMakeEqualStages) {
  for (double cost : {1.0, 0.1, 1e-9, 12345.678}) {
    Partition partition = make_partition(std::vector<double>(42, cost), 16);
    std::vector<int> expected = {2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
    EXPECT_EQ(layers_per_stage(partition), expected) << cost;
  }
}

TEST(PartitionTest, CutsAnyNumberOfLayersIntoAnyNumberOfStages) {
  for (int num_stages = 1; num_stages <= 7; ++num_stages) {
    Partition partition = make_partition(std::vector<double>(7, 1), num_stages);
    EXPECT_EQ(partition.num_stages(), num_stages);
    EXPECT_EQ(partition.num_layers(), 7);
    for (int stage = 0; stage < num_stages; ++stage)
      EXPECT_THAT(partition.num_layers(stage), testing::AnyOf(7 / num_stages, 7 / num_stages + 1));
  }
}

TEST(PartitionTest, LayersWithoutCostCountAsEqual) {
  EXPECT_THAT(layers_per_stage(make_partition({0, 0, 0, 0, 0, 0}, 3)), ElementsAre(2, 2, 2));
}

TEST(PartitionTest, TakesTheLeastVarianceOfTheOptima) {
  // The layer of 10 sets the pace; the rest may be 1+9, 5+5 or worse.
  PartitionProblem problem = problem_of({10, 1, 4, 4, 1}, 3);
  EXPECT_THAT(stage_times(problem, make_partition(problem)), ElementsAre(10, 5, 5));
}

TEST(PartitionTest, AvoidsExpensiveBorders) {
  PartitionProblem problem = problem_of({1, 1, 1, 1}, 2);
  EXPECT_THAT(make_partition(problem).boundaries, ElementsAre(0, 2, 4));
  problem.transfer_costs = {1, 5, 0.5};
  Partition partition = make_partition(problem);
  EXPECT_THAT(partition.boundaries, ElementsAre(0, 3, 4));
  EXPECT_THAT(stage_times(problem, partition), ElementsAre(3.5, 1.5));
}

TEST(PartitionTest, GivesFasterDevicesMore) {
  PartitionProblem problem = problem_of(std::vector<double>(9, 1), 2);
  problem.stages = {{.speed = 2}, {.speed = 1}};
  EXPECT_THAT(layers_per_stage(make_partition(problem)), ElementsAre(6, 3));
}

TEST(PartitionTest, KeepsToMemoryLimits) {
  PartitionProblem problem = problem_of({1, 1, 1, 1}, 2);
  problem.fixed_bytes = {10, 10, 10, 10};
  problem.input_bytes = {1, 2, 3, 4};
  problem.activation_bytes = {100, 100, 100, 100};
  problem.stages = {
      {.memory_bytes = 10 + 3 + 200, .inputs_in_flight = 3, .graphs_in_flight = 2},
      {.inputs_in_flight = 2, .graphs_in_flight = 1}};
  Partition partition = make_partition(problem);
  EXPECT_THAT(layers_per_stage(partition), ElementsAre(1, 3));
  EXPECT_THAT(stage_bytes(problem, partition), ElementsAre(213, 30 + 2 * 2 + 300));
  problem.stages[0].memory_bytes = 20 + 3 + 400;
  EXPECT_THAT(layers_per_stage(make_partition(problem)), ElementsAre(2, 2));
}

TEST(PartitionTest, RefusesMoreStagesThanLayers) {
  EXPECT_THAT(
      error_of([] { make_partition(std::vector<double>(8, 1), 9); }),
      HasSubstr("[partition] 9 stages for 8 layers; use at most 8 stages"));
  EXPECT_THAT(error_of([] { make_partition({1, 1}, 0); }), HasSubstr("0 stages for 2 layers"));
  EXPECT_THAT(
      error_of([] { make_partition(std::vector<double>(), 1); }), HasSubstr("for 0 layers"));
}

TEST(PartitionTest, RefusesWhatIsNotACost) {
  for (double bad :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_THAT(
        error_of([&] { make_partition({1, bad, 1}, 2); }), HasSubstr("the cost of layer 1 is"));
  PartitionProblem problem = problem_of({1, 1, 1}, 2);
  problem.transfer_costs = {1, -1};
  EXPECT_THAT(error_of([&] { make_partition(problem); }), HasSubstr("transfer cost of layer 1"));
}

TEST(PartitionTest, RefusesListsOfAnotherLength) {
  PartitionProblem problem = problem_of({1, 1, 1}, 2);
  problem.transfer_costs = {1};
  EXPECT_THAT(
      error_of([&] { make_partition(problem); }),
      HasSubstr("1 entries of transfer costs; give one for each of the 2 borders"));
  problem = problem_of({1, 1, 1}, 2);
  problem.fixed_bytes = {1, 1};
  EXPECT_THAT(error_of([&] { make_partition(problem); }), HasSubstr("2 entries of fixed bytes"));
  problem = problem_of({1, 1, 1}, 2);
  problem.stages.resize(3);
  EXPECT_THAT(error_of([&] { make_partition(problem); }), HasSubstr("3 entries of limits"));
  problem.stages.assign(2, {.speed = 0});
  EXPECT_THAT(error_of([&] { make_partition(problem); }), HasSubstr("stage 0 has speed 0"));
}

TEST(PartitionTest, NamesALayerThatFitsNowhere) {
  PartitionProblem problem = problem_of({1, 1, 1}, 2);
  problem.fixed_bytes = {100, 3 << 20, 100};
  problem.names = {"stem", "embedding", "head"};
  problem.stages.assign(2, {.memory_bytes = 1 << 20});
  problem.stages[1].memory_bytes = 2 << 20;
  EXPECT_THAT(
      error_of([&] { make_partition(problem); }),
      AllOf(
          HasSubstr("layer 1 (`embedding`) alone needs 3.00 MiB (3145728 bytes)"),
          HasSubstr("even stage 1 is limited to 2.00 MiB (2097152 bytes)")));
}

TEST(PartitionTest, NamesTheLayerAtWhichMemoryEnds) {
  PartitionProblem problem = problem_of(std::vector<double>(6, 1), 2);
  problem.fixed_bytes.assign(6, 100);
  problem.names = {"a", "b", "c", "d", "e", "f"};
  problem.stages.assign(2, {.memory_bytes = 250});
  EXPECT_THAT(
      error_of([&] { make_partition(problem); }),
      AllOf(
          HasSubstr("the 6 layers do not fit on 2 stages"),
          HasSubstr("hold at most the first 4"),
          HasSubstr("with layer 4 (`e`) stage 1 would need 300 B of its 250 B")));
}

TEST(PartitionTest, NamesTheStageThatCanTakeNothing) {
  PartitionProblem problem = problem_of({1, 1, 1}, 3);
  problem.fixed_bytes = {10, 100, 10};
  problem.stages = {{.memory_bytes = 200}, {.memory_bytes = 50}, {.memory_bytes = 200}};
  EXPECT_THAT(
      error_of([&] { make_partition(problem); }),
      AllOf(
          HasSubstr("stages up to 1 hold at most the first 1"),
          HasSubstr("with layer 1 stage 1 would need 100 B of its 50 B")));
}

TEST(PartitionCutTest, TakesTheUsersOwn) {
  EXPECT_THAT(partition_from_cut({3, 4, 5}, 12).boundaries, ElementsAre(0, 3, 7, 12));
  EXPECT_THAT(partition_from_cut({4}, 4).boundaries, ElementsAre(0, 4));
}

TEST(PartitionCutTest, RefusesOneThatDoesNotFitTheModel) {
  EXPECT_THAT(
      error_of([] { partition_from_cut({3, 4, 5}, 13); }),
      HasSubstr("[partition] cut 3,4,5 adds up to 12, but the model has 13 layers; give"));
  EXPECT_THAT(
      error_of([] { partition_from_cut({3, 0, 5}, 8); }),
      HasSubstr("cut 3,0,5 gives 0 layers to stage 1"));
  EXPECT_THAT(error_of([] { partition_from_cut({9, -1}, 8); }), HasSubstr("-1 layers to stage 1"));
  EXPECT_THAT(error_of([] { partition_from_cut({}, 8); }), HasSubstr("empty"));
  EXPECT_THAT(
      error_of([] { partition_from_cut({2147483647, 2147483647}, 8); }),
      HasSubstr("adds up to 4294967294"));
}

TEST(PartitionByTest, MeasuresLayers) {
  CostTable table;
  table.layers = {
      {.name = "a", .forward_seconds = 1, .backward_seconds = 2, .parameters = 7},
      {.name = "b", .forward_seconds = 0.5, .parameters = 9}};
  EXPECT_THAT(layer_costs(table, PartitionBy::Time), ElementsAre(3, 0.5));
  EXPECT_THAT(layer_costs(table, PartitionBy::Parameters), ElementsAre(7, 9));
}

TEST(PartitionByTest, ReadsBackItsNames) {
  for (auto by : {PartitionBy::Time, PartitionBy::Parameters})
    EXPECT_EQ(partition_by_from_string(to_string(by)), by);
  EXPECT_THAT(
      error_of([] { partition_by_from_string("params"); }),
      AllOf(HasSubstr("`params`"), HasSubstr("time or parameters")));
}

TEST(PartitionTest, ReportsOnlyPartitionsOfTheSameProblem) {
  EXPECT_THAT(
      error_of([] { stage_times(problem_of({1, 1}, 1), Partition{{0, 1}}); }),
      HasSubstr("a partition of 1 layers into 1 stages, but a problem of 2 layers"));
}

}  // namespace
}  // namespace gpipe::plan
