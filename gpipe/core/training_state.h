#pragma once

#include <vector>

#include "gpipe/core/layer.h"

namespace gpipe {

/// Remembers gradients, buffers and modes of a network's modules, and puts them back when it goes: for measurements and
/// checks that must leave no trace. Parameters are not copied; nothing that runs under it may change them.
class TrainingState {
 public:
  explicit TrainingState(const Layers& layers);
  ~TrainingState();
  TrainingState(const TrainingState&) = delete;
  TrainingState& operator=(const TrainingState&) = delete;

  /// Buffers as they were, and no gradients: ready for the next measurement.
  void reset();

 private:
  struct Pair {
    at::Tensor tensor;
    at::Tensor value;
  };
  struct Mode {
    std::shared_ptr<torch::nn::Module> module;
    bool is_training;
  };
  std::vector<Pair> gradients_;
  std::vector<Pair> buffers_;
  std::vector<Mode> modes_;
};

}  // namespace gpipe
