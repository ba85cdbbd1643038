#include "app/optimizer.h"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <memory>
#include <utility>

namespace gpipe::app {
namespace {

using torch::optim::Optimizer;
using Parameters = std::vector<at::Tensor>;

std::unique_ptr<Optimizer> make_sgd(const Options& options, Parameters parameters) {
  const double momentum = options.optimizer == "momentum" ? options.momentum : 0;
  return std::make_unique<torch::optim::SGD>(
      std::move(parameters),
      torch::optim::SGDOptions(options.lr).momentum(momentum).weight_decay(options.weight_decay));
}

std::unique_ptr<Optimizer> make_rmsprop(const Options& options, Parameters parameters) {
  return std::make_unique<torch::optim::RMSprop>(
      std::move(parameters),
      torch::optim::RMSpropOptions(options.lr)
          .momentum(options.momentum)
          .weight_decay(options.weight_decay));
}

std::unique_ptr<Optimizer> make_for_stage(const Options& options, Parameters parameters) {
  if (options.optimizer == "adam")
    return std::make_unique<torch::optim::Adam>(
        std::move(parameters),
        torch::optim::AdamOptions(options.lr).weight_decay(options.weight_decay));
  if (options.optimizer == "adamw")
    return std::make_unique<torch::optim::AdamW>(
        std::move(parameters),
        torch::optim::AdamWOptions(options.lr).weight_decay(options.weight_decay));
  if (options.optimizer == "rmsprop")
    return make_rmsprop(options, std::move(parameters));
  return make_sgd(options, std::move(parameters));
}

}  // namespace

PipelineOptimizer make_optimizer(const Options& options, Pipeline& pipeline) {
  return PipelineOptimizer(pipeline, [&options](Parameters parameters) {
    return make_for_stage(options, std::move(parameters));
  });
}

}  // namespace gpipe::app
