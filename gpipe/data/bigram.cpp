#include "gpipe/data/bigram.h"

#include <algorithm>
#include <cmath>

#include "gpipe/base/error.h"

namespace gpipe::data {

namespace {

constexpr int64_t kMaxVocabulary = 8192;

size_t checked_vocabulary(int64_t vocabulary) {
  GPIPE_CHECK(
      vocabulary >= 1 && vocabulary <= kMaxVocabulary,
      "[data] a bigram model of ",
      vocabulary,
      " tokens; use 1 to ",
      kMaxVocabulary);
  return static_cast<size_t>(vocabulary);
}

}  // namespace

Bigram::Bigram(const at::Tensor& text, int64_t vocabulary)
    : vocabulary_(vocabulary),
      counts_(checked_vocabulary(vocabulary)),
      pairs_(counts_.size() * counts_.size()),
      pair_sums_(counts_.size()),
      successors_(counts_.size()) {
  const std::vector<int64_t> tokens = to_tokens(text);
  num_tokens_ = static_cast<int64_t>(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    ++counts_[static_cast<size_t>(tokens[i])];
    if (i == 0)
      continue;
    const auto previous = static_cast<size_t>(tokens[i - 1]);
    int64_t& pair = pairs_[previous * counts_.size() + static_cast<size_t>(tokens[i])];
    successors_[previous] += pair == 0 ? 1 : 0;
    ++pair;
    ++pair_sums_[previous];
  }
}

double Bigram::probability(int64_t previous, int64_t token) const {
  const auto row = static_cast<size_t>(previous);
  const auto column = static_cast<size_t>(token);
  const double single =
      static_cast<double>(counts_.at(column) + 1) / static_cast<double>(num_tokens_ + vocabulary_);
  const auto different = static_cast<double>(successors_.at(row));
  if (different == 0)
    return single;
  const auto pair = static_cast<double>(pairs_[row * counts_.size() + column]);
  return (pair + different * single) / (static_cast<double>(pair_sums_[row]) + different);
}

double Bigram::cross_entropy(const at::Tensor& text) const {
  const std::vector<int64_t> tokens = to_tokens(text);
  GPIPE_CHECK(
      tokens.size() >= 2,
      "[data] a text of ",
      tokens.size(),
      " tokens has no token with one before it; give at least 2");
  double sum = 0;
  for (size_t i = 1; i < tokens.size(); ++i)
    sum -= std::log(probability(tokens[i - 1], tokens[i]));
  return sum / static_cast<double>(tokens.size() - 1);
}

std::vector<int64_t> Bigram::to_tokens(const at::Tensor& text) const {
  GPIPE_CHECK(
      text.defined() && text.dim() == 1 &&
          (text.scalar_type() == at::kByte || text.scalar_type() == at::kLong),
      "[data] a text has to be one row of uint8 or int64 tokens; give a tensor of that kind");
  const at::Tensor wide = text.to(at::kLong).contiguous();
  const auto* data = wide.const_data_ptr<int64_t>();
  std::vector<int64_t> tokens(data, data + wide.numel());
  const auto wrong = std::ranges::find_if(
      tokens, [this](int64_t token) { return token < 0 || token >= vocabulary_; });
  GPIPE_CHECK(
      wrong == tokens.end(),
      "[data] the token ",
      *wrong,
      " lies outside the vocabulary of ",
      vocabulary_,
      "; give a larger one");
  return tokens;
}

}  // namespace gpipe::data
