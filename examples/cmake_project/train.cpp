// Fits a small network in two stages with four micro-batches; prints the loss before and after.
#include <gpipe/gpipe.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <iostream>

int main() {
  gpipe::Layers layers;
  layers.push_back("in", torch::nn::Linear(4, 16));
  layers.push_back("tanh", torch::nn::Tanh());
  layers.push_back("out", torch::nn::Linear(16, 1));

  gpipe::Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = 4});
  torch::optim::SGD optimizer(pipeline.parameters(), 0.1);

  torch::manual_seed(1);
  const auto input = torch::randn({32, 4});
  const auto target = input.sum(1, /*keepdim=*/true);
  double first = 0;
  double last = 0;
  for (int step = 0; step < 50; ++step) {
    optimizer.zero_grad();
    last = pipeline.step(input, target, gpipe::MSELoss()).item<double>();
    first = step == 0 ? last : first;
    optimizer.step();
  }
  std::cout << "loss " << first << " -> " << last << '\n';
  return last < first ? 0 : 1;
}
