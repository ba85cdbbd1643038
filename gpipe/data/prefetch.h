#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <thread>

#include "gpipe/base/channel.h"
#include "gpipe/data/batch.h"

namespace gpipe::data {

/// Makes the batches of another source ahead of time, in one background thread, and gives the same
/// ones. The thread starts with the first next(), also works ahead over the end of an epoch, and
/// waits while `depth` batches are ready. Itself for one consumer at a time.
///
/// An error of the source reaches the consumer at the place in the order where it arose, and again
/// at each later next(), until seek() starts anew.
class Prefetch : public BatchSource {
 public:
  /// Owns `source`. Throws Error for a depth below 1.
  explicit Prefetch(std::unique_ptr<BatchSource> source, int64_t depth = 2);

  /// Drops what is ready, and waits only for the batch that is being made.
  ~Prefetch() override;

  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  int64_t size() const override { return size_; }
  int64_t num_batches() const override { return num_batches_; }
  std::optional<Batch> next() override;

  /// That of the consumer, not of the source, which is ahead.
  Position position() const override { return position_; }
  void seek(Position position) override;

 private:
  struct Item {
    std::optional<Batch> batch;
    Position after;
    std::exception_ptr error;
  };

  void start();
  void stop();
  void fill();

  std::unique_ptr<BatchSource> source_;
  int64_t depth_;
  int64_t size_;
  int64_t num_batches_;
  Position position_;
  std::exception_ptr error_;
  std::unique_ptr<Channel<Item>> items_;
  std::thread thread_;
};

}  // namespace gpipe::data
