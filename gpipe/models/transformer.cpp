#include "gpipe/models/transformer.h"

#include <ATen/Functions.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>
#include <string>

#include "gpipe/base/error.h"

namespace gpipe::models {

namespace {

at::Tensor drop(const at::Tensor& value, double probability, bool is_training) {
  return probability > 0 ? at::dropout(value, probability, is_training) : value;
}

torch::nn::LayerNorm make_norm(int64_t dimension) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({dimension}));
}

/// Weights uniform in +-scale * sqrt(6 / (in + out)), biases 0.
torch::nn::Linear make_linear(int64_t in, int64_t out, double scale = 1) {
  torch::nn::Linear linear(in, out);
  torch::nn::init::xavier_uniform_(linear->weight, scale);
  torch::nn::init::zeros_(linear->bias);
  return linear;
}

class TransformerEmbeddingImpl : public torch::nn::Cloneable<TransformerEmbeddingImpl> {
 public:
  explicit TransformerEmbeddingImpl(const TransformerOptions& options) : options_(options) {
    TransformerEmbeddingImpl::reset();
  }

  void reset() override {
    tokens_ = register_module(
        "tokens", torch::nn::Embedding(options_.vocabulary, options_.model_dimension));
    torch::nn::init::normal_(tokens_->weight, 0, 1 / scale());
  }

  at::Tensor forward(const at::Tensor& ids) {  // [batch, position]
    const at::Tensor embedded = tokens_(ids) * scale();
    const at::Tensor positions =
        sinusoidal_positions(ids.size(-1), options_.model_dimension, embedded.options());
    return drop(embedded + positions, options_.dropout, is_training());
  }

 private:
  double scale() const { return std::sqrt(static_cast<double>(options_.model_dimension)); }

  TransformerOptions options_;
  torch::nn::Embedding tokens_{nullptr};
};
TORCH_MODULE(TransformerEmbedding);

class CausalAttentionImpl : public torch::nn::Cloneable<CausalAttentionImpl> {
 public:
  CausalAttentionImpl(int64_t dimension, int64_t num_heads)
      : dimension_(dimension), num_heads_(num_heads) {
    CausalAttentionImpl::reset();
  }

  void reset() override {
    input_ = register_module("input", make_linear(dimension_, 3 * dimension_));
    output_ = register_module("output", make_linear(dimension_, dimension_));
  }

  at::Tensor forward(const at::Tensor& value) {  // [batch, position, dimension]
    const auto heads = input_(value)
                           .unflatten(-1, {3, num_heads_, dimension_ / num_heads_})
                           .permute({2, 0, 3, 1, 4})  // [3, batch, head, position, width]
                           .unbind();
    const at::Tensor attended = at::scaled_dot_product_attention(
        heads[0], heads[1], heads[2], /*attn_mask=*/{}, /*dropout_p=*/0, /*is_causal=*/true);
    return output_(attended.transpose(1, 2).flatten(-2));
  }

 private:
  int64_t dimension_;
  int64_t num_heads_;
  torch::nn::Linear input_{nullptr};
  torch::nn::Linear output_{nullptr};
};
TORCH_MODULE(CausalAttention);

class TransformerBlockImpl : public torch::nn::Cloneable<TransformerBlockImpl> {
 public:
  explicit TransformerBlockImpl(const TransformerOptions& options) : options_(options) {
    TransformerBlockImpl::reset();
  }

  void reset() override {
    const int64_t dimension = options_.model_dimension;
    const int64_t wide = options_.feed_forward_dimension;
    const double scale = 1.0 / static_cast<double>(options_.num_layers);
    attention_norm_ = register_module("attention_norm", make_norm(dimension));
    attention_ = register_module("attention", CausalAttention(dimension, options_.num_heads));
    feed_forward_norm_ = register_module("feed_forward_norm", make_norm(dimension));
    expand_ = register_module("expand", make_linear(dimension, wide, scale));
    contract_ = register_module("contract", make_linear(wide, dimension, scale));
  }

  at::Tensor forward(const at::Tensor& input) {  // [batch, position, dimension]
    const at::Tensor value = input + dropped(attention_(attention_norm_(input)));
    return value + dropped(contract_(expand_(feed_forward_norm_(value)).relu_()));
  }

 private:
  at::Tensor dropped(const at::Tensor& value) const {
    return drop(value, options_.dropout, is_training());
  }

  TransformerOptions options_;
  torch::nn::LayerNorm attention_norm_{nullptr};
  CausalAttention attention_{nullptr};
  torch::nn::LayerNorm feed_forward_norm_{nullptr};
  torch::nn::Linear expand_{nullptr};
  torch::nn::Linear contract_{nullptr};
};
TORCH_MODULE(TransformerBlock);

class TransformerHeadImpl : public torch::nn::Cloneable<TransformerHeadImpl> {
 public:
  explicit TransformerHeadImpl(const TransformerOptions& options) : options_(options) {
    TransformerHeadImpl::reset();
  }

  void reset() override {
    norm_ = register_module("norm", make_norm(options_.model_dimension));
    linear_ = register_module("linear", make_linear(options_.model_dimension, options_.vocabulary));
  }

  at::Tensor forward(const at::Tensor& value) {  // [batch, position, dimension]
    at::Tensor logits = linear_(norm_(value));
    const double limit = options_.clip_logits;
    return limit > 0 ? logits.clamp(-limit, limit) : logits;
  }

 private:
  TransformerOptions options_;
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear linear_{nullptr};
};
TORCH_MODULE(TransformerHead);

void check(const TransformerOptions& options) {
  GPIPE_CHECK(
      options.num_layers >= 1 && options.feed_forward_dimension >= 1 && options.vocabulary >= 1,
      "[transformer] num_layers = ",
      options.num_layers,
      ", feed_forward_dimension = ",
      options.feed_forward_dimension,
      ", vocabulary = ",
      options.vocabulary,
      "; all must be at least 1");
  GPIPE_CHECK(
      options.model_dimension >= 2 && options.model_dimension % 2 == 0,
      "[transformer] model_dimension = ",
      options.model_dimension,
      "; use an even number, for half of it are sines of the position and half cosines");
  GPIPE_CHECK(
      options.num_heads >= 1 && options.model_dimension % options.num_heads == 0,
      "[transformer] num_heads = ",
      options.num_heads,
      " does not divide model_dimension = ",
      options.model_dimension,
      "; use a divisor of it");
  GPIPE_CHECK(
      options.dropout >= 0 && options.dropout < 1,
      "[transformer] dropout = ",
      options.dropout,
      "; use a probability in [0, 1)");
  GPIPE_CHECK(
      options.clip_logits >= 0,
      "[transformer] clip_logits = ",
      options.clip_logits,
      "; use a magnitude, or 0 to clip none");
}

}  // namespace

Layers transformer(const TransformerOptions& options) {
  check(options);
  Layers layers;
  layers.push_back("embedding", [options] { return TransformerEmbedding(options); });
  for (int64_t i = 0; i < options.num_layers; ++i)
    layers.push_back("block." + std::to_string(i), [options] { return TransformerBlock(options); });
  layers.push_back("head", [options] { return TransformerHead(options); });
  return layers;
}

at::Tensor sinusoidal_positions(
    int64_t num_positions, int64_t dimension, const at::TensorOptions& options) {
  const int64_t half = dimension / 2;
  const auto wide = options.dtype(at::kFloat).requires_grad(false);
  const double step = -std::log(10000.0) / static_cast<double>(std::max<int64_t>(half - 1, 1));
  const at::Tensor frequencies = (at::arange(half, wide) * step).exp();
  const at::Tensor angles = at::outer(at::arange(num_positions, wide), frequencies);
  return at::cat({angles.sin(), angles.cos()}, 1).to(options.dtype());
}

}  // namespace gpipe::models
