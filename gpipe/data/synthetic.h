#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpipe/data/dataset.h"

namespace gpipe::data {

// Data sets made from a seed, for tests, benchmarks and machines without data. Row i does not
// depend on how many rows there are. All lie in memory.

struct SyntheticImageOptions {
  int64_t rows = 256;
  int64_t channels = 3;
  int64_t height = 32;
  int64_t width = 32;
  int64_t classes = 10;
  /// Standard deviation of the noise on top of the pattern of the class, which has 1.
  float noise = 1.0F;
  uint64_t seed = 0;
};

/// Each class has a pattern of its own, so a small network can learn them.
/// inputs: float32 [rows, channels, height, width]; targets: int64 [rows], drawn evenly.
std::shared_ptr<TensorDataset> make_synthetic_images(const SyntheticImageOptions& options = {});

struct SyntheticTokenOptions {
  int64_t rows = 256;
  int64_t length = 32;
  int64_t vocabulary = 64;
  /// Share of tokens that are drawn evenly; the others follow from the token before.
  float noise = 0.1F;
  uint64_t seed = 0;
};

/// Sequences in which a fixed rule gives the next token from the one before, most of the time.
/// inputs: int64 [rows, length]; targets: int64 [rows, length], the inputs moved on by one.
std::shared_ptr<TensorDataset> make_synthetic_tokens(const SyntheticTokenOptions& options = {});

struct SyntheticRowOptions {
  int64_t rows = 256;
  /// Of one row; empty for one number per row.
  std::vector<int64_t> input_shape = {16};
  std::vector<int64_t> target_shape = {1};
  /// Standard deviation of the noise on the targets, which have about 1 without it.
  float noise = 0.0F;
  uint64_t seed = 0;
};

/// Rows of any shape for regression: normal inputs, and targets that depend linearly on them.
/// inputs: float32 [rows, input_shape...]; targets: float32 [rows, target_shape...].
std::shared_ptr<TensorDataset> make_synthetic_rows(const SyntheticRowOptions& options = {});

}  // namespace gpipe::data
