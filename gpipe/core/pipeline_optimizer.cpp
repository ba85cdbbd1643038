#include "gpipe/core/pipeline_optimizer.h"

#include <utility>

namespace gpipe {

PipelineOptimizer::PipelineOptimizer(Pipeline& pipeline, const Factory& factory)
    : pipeline_(&pipeline), optimizers_(pipeline.stages().size()) {
  pipeline.for_each_stage([&](int stage, const std::vector<at::Tensor>& parameters) {
    std::vector<at::Tensor> trained;
    for (const at::Tensor& parameter : parameters) {
      if (parameter.requires_grad())
        trained.push_back(parameter);
    }
    if (!trained.empty())
      optimizers_[static_cast<size_t>(stage)] = factory(std::move(trained));
  });
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
