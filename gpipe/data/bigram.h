#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace gpipe::data {

/// The baseline of a language model: the next token from the one before, by counting. Interpolated
/// by Witten and Bell's rule, so that every probability is above 0:
///
///   p(b)     = (n(b) + 1) / (n + vocabulary)
///   p(b | a) = (n(a, b) + u(a) * p(b)) / (n(a) + u(a))
///
/// with n the counts in the training text, n(a) those of `a` with a successor, and u(a) the number
/// of different successors; p(b | a) = p(b) where `a` has none.
class Bigram {
 public:
  /// Counts in `text`: uint8 or int64 [tokens], each in [0, vocabulary). Throws Error for other
  /// tensors or tokens, or for a vocabulary outside 1 to 8192 (the table has its square).
  explicit Bigram(const at::Tensor& text, int64_t vocabulary = 256);

  double probability(int64_t previous, int64_t token) const;

  /// Mean of -log p over all tokens of `text` but the first, in nats per token. Throws Error for
  /// fewer than two tokens.
  double cross_entropy(const at::Tensor& text) const;

 private:
  std::vector<int64_t> to_tokens(const at::Tensor& text) const;

  int64_t vocabulary_;
  int64_t num_tokens_ = 0;
  std::vector<int64_t> counts_;      // [vocabulary]
  std::vector<int64_t> pairs_;       // [vocabulary, vocabulary]
  std::vector<int64_t> pair_sums_;   // [vocabulary]
  std::vector<int64_t> successors_;  // [vocabulary]
};

}  // namespace gpipe::data
