#include "gpipe/plan/stage_cost.h"

#include "gpipe/base/error.h"

namespace gpipe::plan {
namespace {

void set_times(StageCost& stage, double forward_seconds, double backward_seconds) {
  stage.forward_seconds = forward_seconds;
  stage.recompute_seconds = forward_seconds;
  stage.backward_seconds = backward_seconds;
  stage.backward_input_seconds = backward_seconds / 2;
  stage.backward_weight_seconds = backward_seconds / 2;
}

StageCost cost_of_layers(const CostTable& table, int begin, int end, double speed) {
  StageCost stage;
  double forward_seconds = 0;
  double backward_seconds = 0;
  for (int layer = begin; layer < end; ++layer) {
    forward_seconds += table.layers[layer].forward_seconds;
    backward_seconds += table.layers[layer].backward_seconds;
    stage.activation_bytes += table.layers[layer].activation_bytes;
  }
  set_times(stage, forward_seconds / speed, backward_seconds / speed);
  stage.input_bytes = begin > 0 ? table.layers[begin - 1].output_bytes : table.input_bytes;
  stage.output_bytes = table.layers[end - 1].output_bytes;
  return stage;
}

}  // namespace

std::vector<StageCost> stage_costs(
    const CostTable& table, const Partition& partition, const std::vector<DeviceSpec>& devices) {
  GPIPE_CHECK(
      partition.num_layers() == static_cast<int>(table.layers.size()),
      "[cost] the partition has ",
      partition.num_layers(),
      " layers, but the cost table ",
      table.layers.size(),
      "; profile the model that is partitioned");
  GPIPE_CHECK(
      devices.empty() || static_cast<int>(devices.size()) == partition.num_stages(),
      "[cost] ",
      devices.size(),
      " devices for ",
      partition.num_stages(),
      " stages; give one each, or none");
  std::vector<StageCost> stages;
  for (int stage = 0; stage < partition.num_stages(); ++stage) {
    double speed = devices.empty() ? 1 : devices[stage].speed;
    GPIPE_CHECK(
        speed > 0, "[cost] the device of stage ", stage, " has speed ", speed, "; use above 0");
    stages.push_back(
        cost_of_layers(table, partition.begin_layer(stage), partition.end_layer(stage), speed));
  }
  return stages;
}

std::vector<StageCost> uniform_stage_costs(
    int num_stages, double forward_seconds, double backward_seconds) {
  StageCost stage;
  set_times(stage, forward_seconds, backward_seconds);
  return std::vector<StageCost>(num_stages, stage);
}

}  // namespace gpipe::plan
