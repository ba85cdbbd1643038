// An existing training loop that becomes a pipeline by one line: forward() returns the network's output as a part of
// the caller's autograd graph, so the loss, backward() and the optimizer stay as they are.
//
//   cmake --build build/release --target example_drop_in_forward && build/release/examples/drop_in_forward
//
// Prints the last loss of the plain loop and of the pipelined one, which agree up to rounding.
#include <gpipe/gpipe.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <cmath>
#include <functional>
#include <iostream>

namespace {

struct NetImpl : torch::nn::Module {
  NetImpl()
      : body(register_module(
            "body",
            torch::nn::Sequential(
                torch::nn::Linear(8, 64), torch::nn::Tanh(), torch::nn::Linear(64, 64)))),
        head(register_module("head", torch::nn::Linear(64, 1))) {}

  at::Tensor forward(at::Tensor x) { return head(body->forward(x).tanh()); }

  torch::nn::Sequential body;
  torch::nn::Linear head;
};
TORCH_MODULE(Net);

/// The loop as it was, but for the line with `forward`, which was `net->forward(input)`.
double train(Net& net, const std::function<at::Tensor(at::Tensor)>& forward) {
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  torch::manual_seed(2);
  const at::Tensor input = torch::randn({64, 8});
  const at::Tensor target = input.sum(1, /*keepdim=*/true).sin();
  at::Tensor loss;
  for (int step = 0; step < 50; ++step) {
    optimizer.zero_grad();
    const at::Tensor output = forward(input);
    loss = torch::mse_loss(output, target);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    optimizer.step();
  }
  return loss.item<double>();
}

/// The parameters are shared with the network, not copied.
gpipe::Layers to_layers(Net& net) {
  gpipe::Layers layers;
  layers.push_back("body", net->body);
  layers.push_back("tanh", torch::nn::Tanh());
  layers.push_back("head", net->head);
  return layers;
}

}  // namespace

int main() {
  torch::manual_seed(1);
  Net plain;
  const double expected = train(plain, [&](at::Tensor x) { return plain->forward(x); });

  torch::manual_seed(1);
  Net net;
  gpipe::Pipeline pipeline(to_layers(net), {.num_stages = 2, .num_micro_batches = 4});
  const double loss = train(net, [&](at::Tensor x) { return pipeline.forward(x); });

  std::cout << "loss " << expected << " without a pipeline, " << loss << " with one\n";
  return std::abs(loss - expected) < 1e-3 ? 0 : 1;
}
