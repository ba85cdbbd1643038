#include "gpipe/core/pipeline_optimizer.h"

#include <utility>

#include "gpipe/base/error.h"

namespace gpipe {

PipelineOptimizer::PipelineOptimizer(Pipeline& pipeline, const Factory& factory)
    : pipeline_(&pipeline), optimizers_(pipeline.stages().size()) {
  auto by_stage = pipeline.parameters_by_stage();
  for (size_t stage = 0; stage < by_stage.size(); ++stage) {
    std::vector<at::Tensor> trained;
    for (const at::Tensor& parameter : by_stage[stage]) {
      if (parameter.requires_grad())
        trained.push_back(parameter);
    }
    if (trained.empty())
      continue;
    optimizers_[stage] = factory(std::move(trained));
    GPIPE_CHECK(
        optimizers_[stage] != nullptr,
        "[optimizer] the factory returns no optimizer for stage ",
        stage,
        "; return one for its parameters");
  }
}

void PipelineOptimizer::zero_grad() {
  pipeline_->zero_grad();
}

void PipelineOptimizer::step() {
  pipeline_->for_each_stage([&](int stage, const std::vector<at::Tensor>&) {
    auto& optimizer = optimizers_[static_cast<size_t>(stage)];
    if (optimizer)
      optimizer->step();
  });
}

void PipelineOptimizer::set_lr(double lr) {
  for (auto& optimizer : optimizers_) {
    if (!optimizer)
      continue;
    for (auto& group : optimizer->param_groups())
      group.options().set_lr(lr);
  }
}

}  // namespace gpipe
