#pragma once

#include <string>

#include "gpipe/base/error.h"
#include "gpipe/plan/action.h"

namespace gpipe {

/// An error in a stage: `[pipeline] stage 1, layer 'block3' (index 4), micro-batch 3, backward:
/// <original text>`.
class StageError : public Error {
 public:
  StageError(
      const plan::Action& action,
      int layer,
      const std::string& layer_name,
      const std::string& cause);

  const plan::Action& action() const { return action_; }
  /// Index among all layers; negative where none was running (a hand-off, the loss).
  int layer() const { return layer_; }
  const std::string& cause() const { return cause_; }

 private:
  plan::Action action_;
  int layer_;
  std::string cause_;
};

}  // namespace gpipe
