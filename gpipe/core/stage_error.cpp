#include "gpipe/core/stage_error.h"

namespace gpipe {
namespace {

std::string describe(
    const plan::Action& action,
    int layer,
    const std::string& layer_name,
    const std::string& cause) {
  std::string where = "[pipeline] stage " + std::to_string(action.stage);
  if (layer >= 0)
    where += ", layer '" + layer_name + "' (index " + std::to_string(layer) + ")";
  if (layer < 0 && !layer_name.empty())
    where += ", " + layer_name;
  where += ", micro-batch " + std::to_string(action.micro_batch);
  return where + ", " + std::string(plan::name_of(action.op)) + ": " + cause;
}

}  // namespace

StageError::StageError(
    const plan::Action& action, int layer, const std::string& layer_name, const std::string& cause)
    : Error(describe(action, layer, layer_name, cause)),
      action_(action),
      layer_(layer),
      cause_(cause) {}

}  // namespace gpipe
