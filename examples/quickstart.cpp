// Trains a small convolutional network on made-up images: two stages, four micro-batches.
//
//   cmake --build build/release --target example_quickstart && build/release/examples/quickstart
//
// Prints the last loss of each of five epochs, which falls from about 2 to below 0.1, and then a picture of what ran when
// in the last step.
#include <gpipe/data/loader.h>
#include <gpipe/data/synthetic.h>
#include <gpipe/gpipe.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <iostream>

int main() {
  const auto images = gpipe::data::make_synthetic_images({.rows = 512, .height = 16, .width = 16});
  gpipe::data::Loader loader(images, {.batch_size = 64, .shuffle = true});

  // The network as a sequence of layers: modules, factories of modules, callables.
  using torch::nn::Conv2dOptions;
  gpipe::Layers layers;
  layers.push_back("conv1", [] { return torch::nn::Conv2d(Conv2dOptions(3, 16, 3).stride(2)); });
  layers.push_back("norm1", torch::nn::BatchNorm2d(16));
  layers.push_back("relu1", torch::nn::ReLU());
  layers.push_back("conv2", [] { return torch::nn::Conv2d(Conv2dOptions(16, 32, 3)); });
  layers.push_back("relu2", torch::nn::ReLU());
  layers.push_back("flatten", [](at::Tensor x) { return x.flatten(1); });
  layers.push_back("dropout", torch::nn::Dropout(0.1));
  layers.push_back("head", [] { return torch::nn::Linear(32 * 5 * 5, 10); });

  gpipe::Pipeline pipeline(layers, {.num_stages = 2, .num_micro_batches = 4, .cut = {3, 5}});
  torch::optim::AdamW optimizer(pipeline.parameters(), torch::optim::AdamWOptions(1e-3));

  at::Tensor loss;
  for (int epoch = 1; epoch <= 5; ++epoch) {
    while (auto batch = loader.next()) {
      optimizer.zero_grad();
      loss = pipeline.step(batch->inputs, batch->targets, gpipe::CrossEntropyLoss());
      optimizer.step();
    }
    std::cout << "epoch " << epoch << ", loss " << loss.item<double>() << '\n';
  }
  std::cout << gpipe::plan::to_text(pipeline.timeline(), 80);
  return loss.item<double>() < 0.5 ? 0 : 1;
}
