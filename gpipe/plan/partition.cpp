#include "gpipe/plan/partition.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "gpipe/base/error.h"
#include "gpipe/base/nearest.h"
#include "gpipe/plan/partition_impl.h"

namespace gpipe::plan {
namespace {

constexpr std::array<std::string_view, 2> kMeasureNames = {"time", "parameters"};

std::string join(const std::vector<int>& numbers) {
  std::string text;
  for (int number : numbers)
    text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

void check_fits_problem(const PartitionProblem& problem, const Partition& partition) {
  check_problem(problem);
  GPIPE_CHECK(
      partition.num_stages() == problem.num_stages &&
          partition.num_layers() == static_cast<int>(problem.costs.size()),
      "[partition] a partition of ",
      partition.num_layers(),
      " layers into ",
      partition.num_stages(),
      " stages, but a problem of ",
      problem.costs.size(),
      " layers and ",
      problem.num_stages,
      " stages; use the problem it was made for");
}

}  // namespace

int Partition::stage_of(int layer) const {
  GPIPE_CHECK(
      layer >= 0 && layer < num_layers(),
      "[partition] no layer ",
      layer,
      " among ",
      num_layers(),
      ", which are counted from 0");
  auto end = std::upper_bound(boundaries.begin(), boundaries.end(), layer);
  return static_cast<int>(end - boundaries.begin()) - 1;
}

std::vector<int> layers_per_stage(const Partition& partition) {
  std::vector<int> layers;
  for (int stage = 0; stage < partition.num_stages(); ++stage)
    layers.push_back(partition.num_layers(stage));
  return layers;
}

Partition partition_from_cut(const std::vector<int>& layers_per_stage, int num_layers) {
  std::string cut = join(layers_per_stage);
  GPIPE_CHECK(!layers_per_stage.empty(), "[partition] the cut is empty; give layers per stage");
  std::int64_t sum = std::accumulate(
      layers_per_stage.begin(), layers_per_stage.end(), static_cast<std::int64_t>(0));
  for (std::size_t stage = 0; stage < layers_per_stage.size(); ++stage) {
    GPIPE_CHECK(
        layers_per_stage[stage] >= 1,
        "[partition] cut ",
        cut,
        " gives ",
        layers_per_stage[stage],
        " layers to stage ",
        stage,
        "; give every stage at least 1");
  }
  GPIPE_CHECK(
      sum == num_layers,
      "[partition] cut ",
      cut,
      " adds up to ",
      sum,
      ", but the model has ",
      num_layers,
      " layers; give numbers of layers per stage that add up to ",
      num_layers);
  Partition partition;
  for (int layers : layers_per_stage)
    partition.boundaries.push_back(partition.num_layers() + layers);
  return partition;
}

std::vector<double> stage_times(const PartitionProblem& problem, const Partition& partition) {
  check_fits_problem(problem, partition);
  std::vector<double> times;
  for (int stage = 0; stage < partition.num_stages(); ++stage) {
    int begin = partition.begin_layer(stage);
    int end = partition.end_layer(stage);
    double cost = std::accumulate(problem.costs.begin() + begin, problem.costs.begin() + end, 0.0);
    double time = cost / limits_of(problem, stage).speed;
    if (!problem.transfer_costs.empty() && begin > 0)
      time += problem.transfer_costs[begin - 1];
    if (!problem.transfer_costs.empty() && end < partition.num_layers())
      time += problem.transfer_costs[end - 1];
    times.push_back(time);
  }
  return times;
}

std::vector<std::int64_t> stage_bytes(const PartitionProblem& problem, const Partition& partition) {
  check_fits_problem(problem, partition);
  StageModel model(problem);
  std::vector<std::int64_t> bytes;
  for (int stage = 0; stage < partition.num_stages(); ++stage)
    bytes.push_back(model.bytes(stage, partition.begin_layer(stage), partition.end_layer(stage)));
  return bytes;
}

std::string_view to_string(PartitionBy by) {
  return kMeasureNames.at(static_cast<int>(by));
}

PartitionBy partition_by_from_string(std::string_view text) {
  auto found = std::find(kMeasureNames.begin(), kMeasureNames.end(), text);
  GPIPE_CHECK(
      found != kMeasureNames.end(),
      "[partition] unknown measure `",
      text,
      "`",
      did_you_mean(text, {kMeasureNames.begin(), kMeasureNames.end()}),
      "; use time or parameters");
  return static_cast<PartitionBy>(found - kMeasureNames.begin());
}

std::vector<double> layer_costs(const CostTable& table, PartitionBy by) {
  std::vector<double> costs;
  for (const LayerCost& layer : table.layers)
    costs.push_back(
        by == PartitionBy::Time ? layer.forward_seconds + layer.backward_seconds
                                : static_cast<double>(layer.parameters));
  return costs;
}

}  // namespace gpipe::plan
