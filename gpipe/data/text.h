#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <span>

#include "gpipe/data/dataset.h"

namespace gpipe::data {

struct TextOptions {
  /// Share of the bytes that is held out from training, above 0 and below 1.
  double held_out_share = 0.1;
  /// Longest run of bytes that is held out in one piece.
  int64_t block_bytes = 8192;
};

/// A text as bytes, the tokens of a byte-level language model (UTF-8 or any other encoding), in two
/// disjoint parts.
struct Text {
  static constexpr int64_t kVocabulary = 256;

  at::Tensor train;     ///< uint8 [bytes]
  at::Tensor held_out;  ///< uint8 [bytes]
  int64_t num_files = 0;
};

/// Cuts bytes into two parts: of each run of block_bytes / held_out_share bytes (or of all, where
/// there are fewer) the last share is held out. Both parts keep the order of the text. Throws Error
/// for a share or a block out of range.
Text split_text(std::span<const uint8_t> bytes, const TextOptions& options = {});

/// Reads a file, or all files *.txt directly in a folder, in the order of their names, and splits
/// each with split_text, so that both parts come from all files. The result depends only on the
/// files and the options. Throws Error where the path is missing, or holds no text.
Text read_text(const std::filesystem::path& path, const TextOptions& options = {});

struct WindowOptions {
  /// Tokens per row.
  int64_t length = 128;
  /// Where the first window starts is drawn anew in each epoch, so that the borders of the rows
  /// fall elsewhere. Otherwise it starts at the first token.
  bool random_start = false;
  uint64_t seed = 0;
};

/// Rows of consecutive tokens for training. A row has the input int64 [length] and the target
/// int64 [length], the input moved on by one token. The windows of an epoch do not overlap; up to
/// `length` tokens at the ends are left out.
class TextWindows : public Dataset {
 public:
  /// `text`: uint8 or int64 [tokens]. Throws Error where it has less than one window: `length` + 1
  /// tokens, or 2 * `length` with random_start.
  TextWindows(const at::Tensor& text, const WindowOptions& options);

  int64_t size() const override;
  Batch rows(std::span<const int64_t> numbers, int64_t epoch) const override;

 private:
  at::Tensor text_;
  WindowOptions options_;
};

/// Rows for evaluation: each token but the first is a valid target exactly once. The last row is
/// moved back so that it ends with the text; targets that the row before already had are
/// kIgnoredTarget. The same in every epoch.
class TextCover : public Dataset {
 public:
  /// The default of LibTorch's losses for targets that do not count.
  static constexpr int64_t kIgnoredTarget = -100;

  /// `text`: uint8 or int64 [tokens]. Throws Error where it has fewer than `length` + 1 tokens.
  TextCover(const at::Tensor& text, int64_t length);

  int64_t size() const override;
  Batch rows(std::span<const int64_t> numbers, int64_t epoch) const override;

 private:
  at::Tensor text_;
  int64_t length_;
};

}  // namespace gpipe::data
