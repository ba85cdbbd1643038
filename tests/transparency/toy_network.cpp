#include <torch/torch.h>

#include "tests/transparency/networks.h"

namespace gpipe::testing {
namespace {

/// Scales the gradient by noise: a draw in backward.
struct NoisyGradient : torch::autograd::Function<NoisyGradient> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return x.clone();
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext*, torch::autograd::variable_list gradients) {
    return {gradients[0] * (1 + 0.1 * torch::rand_like(gradients[0]))};
  }
};

struct MixImpl : torch::nn::Module {
  MixImpl() {
    linear = register_module("linear", torch::nn::Linear(8, 8));
    embedding = register_module("embedding", torch::nn::Embedding(10, 8));
  }
  std::tuple<at::Tensor, at::Tensor, at::Tensor> forward(
      const at::Tensor& x, const at::Tensor& ids) {
    return {linear(x) + embedding(ids), ids, at::Tensor()};
  }
  torch::nn::Linear linear{nullptr};
  torch::nn::Embedding embedding{nullptr};
};
TORCH_MODULE(Mix);

struct NormTwiceImpl : torch::nn::Module {
  NormTwiceImpl() {
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
    instance = register_module(
        "instance",
        torch::nn::InstanceNorm1d(torch::nn::InstanceNorm1dOptions(2).track_running_stats(true)));
    calls = register_buffer("calls", torch::zeros({}, torch::kLong));
  }
  Tensors forward(const at::Tensor& h, const at::Tensor& ids, const at::Tensor& none) {
    calls.add_(1);
    at::Tensor y = norm(h);
    y = norm(y * 2 + 1);
    y = instance(y.view({-1, 2, 4})).flatten(1) + y;
    return {torch::dropout(y, 0.3, is_training()), ids, none};
  }
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::InstanceNorm1d instance{nullptr};
  at::Tensor calls;
};
TORCH_MODULE(NormTwice);

/// Returns a transposed view and passes its input on.
struct RecurrentImpl : torch::nn::Module {
  RecurrentImpl() {
    lstm = register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(4, 6).batch_first(true)));
  }
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& h) {
    auto [output, state] = lstm(h.view({-1, 2, 4}));
    return {output.transpose(1, 2), h};
  }
  torch::nn::LSTM lstm{nullptr};
};
TORCH_MODULE(Recurrent);

struct TwiceImpl : torch::nn::Module {
  TwiceImpl() { linear = register_module("linear", torch::nn::Linear(8, 8)); }
  at::Tensor forward(const at::Tensor& h) { return linear(torch::tanh(linear(h))); }
  torch::nn::Linear linear{nullptr};
};
TORCH_MODULE(Twice);

torch::nn::Linear frozen_linear() {
  torch::nn::Linear linear(8, 8);
  for (auto& parameter : linear->parameters())
    parameter.set_requires_grad(false);
  return linear;
}

Layers make_layers() {
  Layers layers;
  layers.push_back("mix", [] { return Mix(); });
  layers.push_back("inplace", [](at::Tensor h, at::Tensor ids, at::Tensor none) {
    return Tensors{h.relu_(), ids, none};
  });
  layers.push_back("norm", [] { return NormTwice(); });
  layers.push_back("noise", [](const Tensors& values) {
    const at::Tensor& h = values[0];
    return NoisyGradient::apply(
        h + 0.1 * torch::randn_like(h) + values[1].to(h.dtype()).unsqueeze(1) * 0.01);
  });
  layers.push_back("recurrent", [] { return Recurrent(); });
  layers.push_back("join", [](at::Tensor y, at::Tensor h) {
    return torch::cat({y.reshape({y.size(0), -1}), h}, 1);
  });
  layers.push_back("sequence", [] {
    return torch::nn::Sequential(
        torch::nn::Linear(20, 8),
        torch::nn::Dropout(torch::nn::DropoutOptions(0.2).inplace(true)),
        torch::nn::ReLU(torch::nn::ReLUOptions(true)));
  });
  layers.push_back("frozen", [] { return frozen_linear(); });
  layers.push_back("twice", [] { return Twice(); });
  layers.push_back("head", [] { return torch::nn::Linear(8, 3); });
  return layers;
}

std::pair<Tensors, Tensors> make_batch(int step, int64_t rows, c10::ScalarType dtype) {
  auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(100 + step));
  const auto x = torch::randn({rows, 8}, generator, torch::kDouble).to(dtype);
  const auto ids = torch::randint(0, 10, {rows}, generator, torch::kLong);
  const auto target = torch::randint(0, 3, {rows}, generator, torch::kLong);
  return {{x, ids}, {target}};
}

}  // namespace

Network toy_network() {
  return {.name = "Toy", .make_layers = make_layers, .make_batch = make_batch, .make_loss = [] {
            return CrossEntropyLoss({.label_smoothing = 0.1});
          }};
}

}  // namespace gpipe::testing
