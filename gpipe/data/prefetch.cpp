#include "gpipe/data/prefetch.h"

#include <utility>

#include "gpipe/base/error.h"

namespace gpipe::data {

Prefetch::Prefetch(std::unique_ptr<BatchSource> source, int64_t depth)
    : source_(std::move(source)),
      depth_(depth),
      size_(source_->size()),
      num_batches_(source_->num_batches()),
      position_(source_->position()) {
  GPIPE_CHECK(depth_ >= 1, "[data] a prefetch depth of ", depth_, "; use at least 1");
}

Prefetch::~Prefetch() {
  stop();
}

std::optional<Batch> Prefetch::next() {
  if (error_)
    std::rethrow_exception(error_);
  if (!thread_.joinable())
    start();
  std::optional<Item> item = items_->pop();
  GPIPE_ASSERT(item.has_value(), "Only stop() closes the channel.");
  if (item->error) {
    error_ = item->error;
    std::rethrow_exception(error_);
  }
  position_ = item->after;
  return std::move(item->batch);
}

void Prefetch::seek(Position position) {
  stop();
  source_->seek(position);
  position_ = source_->position();
  error_ = nullptr;
}

void Prefetch::start() {
  items_ = std::make_unique<Channel<Item>>(static_cast<size_t>(depth_));
  thread_ = std::thread([this] { fill(); });
}

void Prefetch::stop() {
  if (!thread_.joinable())
    return;
  items_->close();
  thread_.join();
}

void Prefetch::fill() {
  bool failed = false;
  while (!failed) {
    Item item;
    try {
      item.batch = source_->next();
      item.after = source_->position();
    } catch (...) {
      item.error = std::current_exception();
    }
    failed = item.error != nullptr;
    if (!items_->push(std::move(item)))
      return;
  }
}

}  // namespace gpipe::data
