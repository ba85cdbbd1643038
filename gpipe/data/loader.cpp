#include "gpipe/data/loader.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "gpipe/data/random.h"

namespace gpipe::data {

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)), options_(options) {
  GPIPE_CHECK(
      options_.batch_size >= 1, "[data] a batch size of ", options_.batch_size, "; use at least 1");
  GPIPE_CHECK(size() >= 1, "[data] the data set has no rows; give one with at least 1");
  GPIPE_CHECK(
      num_batches() >= 1,
      "[data] ",
      size(),
      " rows give no full batch of ",
      options_.batch_size,
      "; use a batch size of at most ",
      size(),
      ", or do not drop the last batch");
  start_order();
}

int64_t Loader::num_batches() const {
  const int64_t full = size() / options_.batch_size;
  return options_.drop_last || size() % options_.batch_size == 0 ? full : full + 1;
}

std::optional<Batch> Loader::next() {
  if (position_.batch == num_batches()) {
    seek({.epoch = position_.epoch + 1, .batch = 0});
    return std::nullopt;
  }
  const int64_t first = position_.batch * options_.batch_size;
  const int64_t count = std::min(options_.batch_size, size() - first);
  const auto numbers =
      std::span(order_).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  Batch batch = dataset_->rows(numbers, position_.epoch);
  ++position_.batch;
  return batch;
}

void Loader::seek(Position position) {
  GPIPE_CHECK(
      position.epoch >= 0 && position.batch >= 0 && position.batch <= num_batches(),
      "[data] batch ",
      position.batch,
      " of epoch ",
      position.epoch,
      " does not exist in epochs of ",
      num_batches(),
      " batches; use the data set and the batch size that the position was taken with");
  const bool same_epoch = position.epoch == position_.epoch;
  position_ = position;
  if (!same_epoch)
    start_order();
}

void Loader::start_order() {
  if (options_.shuffle) {
    order_ = make_permutation(size(), options_.seed, position_.epoch);
  } else if (order_.empty()) {
    order_.resize(static_cast<size_t>(size()));
    std::iota(order_.begin(), order_.end(), 0);
  }
}

}  // namespace gpipe::data
