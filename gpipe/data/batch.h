#pragma once

#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpipe/base/error.h"

namespace gpipe::data {

/// One mini-batch on the CPU. All tensors have the same size in dimension 0, the rows. The tensors
/// belong to whoever holds the batch: a source never writes to them again.
struct Batch {
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> targets;

  /// Number of rows; 0 without tensors.
  int64_t rows() const {
    if (!inputs.empty())
      return inputs.front().size(0);
    return targets.empty() ? 0 : targets.front().size(0);
  }

  /// Views of `count` rows from `first` on, for example one replica's part.
  Batch narrow(int64_t first, int64_t count) const {
    GPIPE_CHECK(
        first >= 0 && count >= 0 && first <= rows() - count,
        "[data] rows ",
        first,
        " to ",
        first + count,
        " of a batch of ",
        rows(),
        " rows; stay within the batch");
    Batch part;
    for (const auto& tensor : inputs)
      part.inputs.push_back(tensor.narrow(0, first, count));
    for (const auto& tensor : targets)
      part.targets.push_back(tensor.narrow(0, first, count));
    return part;
  }
};

/// Where a source stands: the next batch is number `batch` of `epoch`, both from 0. `batch` equal
/// to num_batches() is the end of the epoch. A checkpoint stores it.
struct Position {
  int64_t epoch = 0;
  int64_t batch = 0;

  auto operator<=>(const Position&) const = default;
};

/// A stream of batches in epochs. What a batch holds depends only on the source's options and on
/// its position, so a source that is put back to a position goes on with the same bits.
/// Not thread-safe: one consumer at a time.
///
///   while (auto batch = source.next()) ...   // one epoch; the same loop again gives the next one
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// Rows of the data set.
  virtual int64_t size() const = 0;

  /// Batches per epoch, at least 1.
  virtual int64_t num_batches() const = 0;

  /// The next batch of this epoch. Nothing at the end of the epoch, once: the call after that
  /// gives the first batch of the next epoch (Repeat hides the ends).
  virtual std::optional<Batch> next() = 0;

  /// Position of the batch that next() gives.
  virtual Position position() const = 0;

  /// Makes next() go on at `position`. Throws Error where the epoch has no such batch.
  virtual void seek(Position position) = 0;

  void start_epoch(int64_t epoch) { seek({.epoch = epoch, .batch = 0}); }

 protected:
  BatchSource() = default;
  BatchSource(const BatchSource&) = default;
  BatchSource& operator=(const BatchSource&) = default;
};

}  // namespace gpipe::data
