#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpipe/data/batch.h"

namespace gpipe::data {

/// Rows by number. Immutable once made; all members may be called from any thread.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Number of rows, the same in every epoch.
  virtual int64_t size() const = 0;

  /// The rows with these numbers, in this order, as newly allocated tensors. A row depends only on
  /// its number and on `epoch` (augmentation), not on the others. Numbers are in [0, size()).
  virtual Batch rows(std::span<const int64_t> numbers, int64_t epoch) const = 0;

 protected:
  Dataset() = default;
  Dataset(const Dataset&) = default;
  Dataset& operator=(const Dataset&) = default;
};

/// A data set whose rows lie in memory as tensors of any dtype and shape.
class TensorDataset : public Dataset {
 public:
  /// Keeps the tensors, which must not be written to afterwards. Throws Error without inputs, for
  /// tensors that are not on the CPU, or where they have different numbers of rows (dimension 0).
  explicit TensorDataset(std::vector<at::Tensor> inputs, std::vector<at::Tensor> targets = {});

  int64_t size() const override { return all_.rows(); }
  Batch rows(std::span<const int64_t> numbers, int64_t epoch) const override;

  /// All rows, sharing memory with the data set.
  const Batch& all() const { return all_; }

 private:
  Batch all_;
};

/// The rows of `tensor`, on the CPU, with these numbers, newly allocated. Throws Error for a number
/// outside of it.
at::Tensor select_rows(const at::Tensor& tensor, std::span<const int64_t> numbers);

}  // namespace gpipe::data
