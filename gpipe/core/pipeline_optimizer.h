#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>
#include <vector>

#include "gpipe/core/pipeline.h"

namespace gpipe {

/// One torch::optim optimizer per stage, stepped side by side, each on its stage's thread. Any
/// optimizer that treats parameters one by one gives the same bits as a single one over
/// pipeline.parameters(), which works as well.
class PipelineOptimizer {
 public:
  using Factory =
      std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor> parameters)>;

  /// `factory`, called stage by stage on this thread, makes a stage's optimizer from its parameters that require a gradient; it is not
  /// called for a stage without any. The pipeline must outlive the optimizer.
  PipelineOptimizer(Pipeline& pipeline, const Factory& factory);

  void zero_grad();
  void step();

  /// The learning rate of all parameter groups.
  void set_lr(double lr);

 private:
  Pipeline* pipeline_;
  std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers_;
};

}  // namespace gpipe
