// Modules of one's own with several inputs and outputs; an integer tensor crosses the borders between three stages.
//
//   ids, lengths -> embed -> h, lengths -> mix1 -> h, lengths -> mix2 -> h, lengths -> classify -> logits
//
//   cmake --build build/release --target example_own_module && build/release/examples/own_module
//
// Prints that a pipelined step has the bits of plain autograd, then the loss every ten steps, which falls below 0.1.
#include <gpipe/gpipe.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <iostream>
#include <tuple>

namespace {

using Masked = std::tuple<at::Tensor, at::Tensor>;

/// Nothing here knows of pipelines: these are plain LibTorch modules.
struct EmbedImpl : torch::nn::Module {
  EmbedImpl(int64_t vocabulary, int64_t width)
      : table(register_module("table", torch::nn::Embedding(vocabulary, width))) {}

  Masked forward(at::Tensor ids, at::Tensor lengths) { return {table(ids), lengths}; }

  torch::nn::Embedding table;
};
TORCH_MODULE(Embed);

struct MixImpl : torch::nn::Module {
  explicit MixImpl(int64_t width)
      : norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        linear(register_module("linear", torch::nn::Linear(width, width))) {}

  Masked forward(at::Tensor h, at::Tensor lengths) { return {h + linear(norm(h)).tanh(), lengths}; }

  torch::nn::LayerNorm norm;
  torch::nn::Linear linear;
};
TORCH_MODULE(Mix);

struct ClassifyImpl : torch::nn::Module {
  ClassifyImpl(int64_t width, int64_t classes)
      : linear(register_module("linear", torch::nn::Linear(width, classes))) {}

  /// The mean over the first `length` positions of each row: h [rows, position, width], lengths [rows].
  at::Tensor forward(at::Tensor h, at::Tensor lengths) {
    const at::Tensor positions = torch::arange(h.size(1));
    const at::Tensor counts = (positions < lengths.unsqueeze(1)).to(h.scalar_type());
    return linear((h * counts.unsqueeze(2)).sum(1) / lengths.unsqueeze(1));
  }

  torch::nn::Linear linear;
};
TORCH_MODULE(Classify);

constexpr int64_t kClasses = 4;
constexpr int64_t kPositions = 12;

struct Rows {
  at::Tensor ids;
  at::Tensor lengths;
  at::Tensor targets;
};

/// The first `length` tokens tell the class; the rest is noise.
Rows make_rows(int64_t count) {
  Rows rows;
  rows.targets = torch::randint(kClasses, {count});
  rows.lengths = torch::randint(1, kPositions + 1, {count});
  const at::Tensor tokens =
      rows.targets.unsqueeze(1) + kClasses * torch::randint(8, {count, kPositions});
  const at::Tensor is_valid = torch::arange(kPositions) < rows.lengths.unsqueeze(1);
  rows.ids = torch::where(is_valid, tokens, torch::randint(8 * kClasses, {count, kPositions}));
  return rows;
}

}  // namespace

int main() {
  torch::manual_seed(1);
  gpipe::Layers layers;
  layers.push_back("embed", [] { return Embed(8 * kClasses, 16); });
  layers.push_back("mix1", [] { return Mix(16); });
  layers.push_back("mix2", [] { return Mix(16); });
  layers.push_back("classify", [] { return Classify(16, kClasses); });

  const gpipe::PipelineOptions options{
      .num_stages = 3, .num_micro_batches = 5, .cut = {1, 1, 2}, .seed = 7};
  const gpipe::Loss loss = torch::nn::CrossEntropyLoss();
  Rows rows = make_rows(64);
  const auto report =
      gpipe::self_check(layers, options, {rows.ids, rows.lengths}, rows.targets, loss);
  std::cout << report.to_string() << '\n';

  gpipe::Pipeline pipeline(layers, options);
  torch::optim::Adam optimizer(pipeline.parameters(), torch::optim::AdamOptions(1e-2));
  double last = 0;
  for (int step = 0; step < 50; ++step) {
    rows = make_rows(64);
    optimizer.zero_grad();
    last = pipeline.step({rows.ids, rows.lengths}, rows.targets, loss).item<double>();
    optimizer.step();
    if (step % 10 == 9)
      std::cout << "step " << step + 1 << ", loss " << last << '\n';
  }
  return report.ok && last < 0.3 ? 0 : 1;
}
