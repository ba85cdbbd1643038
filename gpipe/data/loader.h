#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gpipe/data/batch.h"
#include "gpipe/data/dataset.h"

namespace gpipe::data {

struct LoaderOptions {
  /// Rows per batch.
  int64_t batch_size = 32;
  /// A new order in each epoch, which depends only on (number of rows, seed, epoch).
  bool shuffle = false;
  /// Leaves out the last batch of an epoch where it is short; otherwise it is delivered short: 10
  /// rows in batches of 4 give 4, 4, 2.
  bool drop_last = false;
  uint64_t seed = 0;
};

/// Batches of a data set, made in the consumer's thread (Prefetch moves that to another).
class Loader : public BatchSource {
 public:
  /// Throws Error for a batch size below 1, an empty data set, or where drop_last leaves no batch.
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);

  int64_t size() const override { return dataset_->size(); }
  int64_t num_batches() const override;
  std::optional<Batch> next() override;
  Position position() const override { return position_; }
  void seek(Position position) override;

 private:
  void start_order();

  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  Position position_;
  std::vector<int64_t> order_;
};

/// Goes on with the next epoch where the wrapped source ends one, so next() always gives a batch:
/// for training that counts steps, also more of them than an epoch has.
class Repeat : public BatchSource {
 public:
  explicit Repeat(std::unique_ptr<BatchSource> source) : source_(std::move(source)) {}

  int64_t size() const override { return source_->size(); }
  int64_t num_batches() const override { return source_->num_batches(); }
  std::optional<Batch> next() override {
    auto batch = source_->next();
    return batch ? std::move(batch) : source_->next();
  }
  Position position() const override { return source_->position(); }
  void seek(Position position) override { source_->seek(position); }

 private:
  std::unique_ptr<BatchSource> source_;
};

}  // namespace gpipe::data
