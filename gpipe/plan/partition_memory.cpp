#include <algorithm>
#include <optional>

#include "gpipe/base/error.h"
#include "gpipe/base/units.h"
#include "gpipe/plan/partition_impl.h"

namespace gpipe::plan {
namespace {

std::string name_of(const PartitionProblem& problem, int layer) {
  std::string text = "layer " + std::to_string(layer);
  return problem.names.empty() ? text : text + " (`" + problem.names[layer] + "`)";
}

std::string exact(std::int64_t bytes) {
  std::string text = format_bytes(bytes);
  return bytes < 1024 ? text : text + " (" + std::to_string(bytes) + " bytes)";
}

/// A layer that fits on no stage even alone, if there is one.
std::optional<std::string> explain_single_layer(
    const PartitionProblem& problem, const StageModel& model) {
  for (int layer = 0; layer < model.num_layers(); ++layer) {
    bool fits = false;
    int roomiest = 0;
    auto excess = [&](int stage) {
      return model.bytes(stage, layer, layer + 1) - model.limits(stage).memory_bytes;
    };
    for (int stage = 0; stage < model.num_stages(); ++stage) {
      fits = fits || model.fits(stage, layer, layer + 1);
      roomiest = excess(stage) < excess(roomiest) ? stage : roomiest;
    }
    if (fits)
      continue;
    return detail::concatenate(
        "[partition] ",
        name_of(problem, layer),
        " alone needs ",
        exact(model.bytes(roomiest, layer, layer + 1)),
        ", but even stage ",
        roomiest,
        " is limited to ",
        exact(model.limits(roomiest).memory_bytes),
        "; raise the limit, use more micro-batches, or split the layer");
  }
  return std::nullopt;
}

/// Whether the stages up to and including each can hold the layers before each and no others, with
/// a layer left for every stage to come: [num_stages][num_layers + 1].
std::vector<std::vector<bool>> reachable_prefixes(const StageModel& model) {
  std::vector<std::vector<bool>> reachable;
  std::vector<bool> before(model.num_layers() + 1, false);
  before[0] = true;
  for (int stage = 0; stage < model.num_stages(); ++stage) {
    auto& after = reachable.emplace_back(model.num_layers() + 1, false);
    int last_end = model.num_layers() - (model.num_stages() - 1 - stage);
    for (int begin = 0; begin < model.num_layers(); ++begin) {
      if (!before[begin])
        continue;
      for (int end = begin + 1; end <= last_end; ++end) {
        if (model.never_fits(stage, begin, end))
          break;
        after[end] = after[end] || model.fits(stage, begin, end);
      }
    }
    before = after;
  }
  return reachable;
}

int last_set(const std::vector<bool>& flags) {
  auto found = std::find(flags.rbegin(), flags.rend(), true);
  return static_cast<int>(flags.rend() - found) - 1;
}

/// A stage that lacks the memory for `layer` behind its layers from `begin` on.
struct Obstacle {
  int stage;
  int begin;
  int layer;
};

Obstacle find_obstacle(const StageModel& model) {
  auto reachable = reachable_prefixes(model);
  for (int stage = 0; stage < model.num_stages(); ++stage) {
    if (last_set(reachable[stage]) >= 0)
      continue;
    // The stage can take no layer at all behind those before it.
    int layer = stage > 0 ? last_set(reachable[stage - 1]) : 0;
    return {stage, layer, layer};
  }
  int last = model.num_stages() - 1;
  int layer = last_set(reachable[last]);
  int begin = last > 0 ? layer : 0;
  while (begin > 0 && !reachable[last - 1][begin])
    --begin;
  return {last, begin, layer};
}

}  // namespace

std::string explain_memory(const PartitionProblem& problem, const StageModel& model) {
  if (auto text = explain_single_layer(problem, model))
    return *text;
  auto [stage, begin, layer] = find_obstacle(model);
  return detail::concatenate(
      "[partition] the ",
      model.num_layers(),
      " layers do not fit on ",
      model.num_stages(),
      " stages: stages up to ",
      stage,
      " hold at most the first ",
      layer,
      ", and with ",
      name_of(problem, layer),
      " stage ",
      stage,
      " would need ",
      exact(model.bytes(stage, begin, layer + 1)),
      " of its ",
      exact(model.limits(stage).memory_bytes),
      "; raise the limit, or use more stages or micro-batches");
}

}  // namespace gpipe::plan
