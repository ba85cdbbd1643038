#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace gpipe {

namespace detail {

/// Tells the processor that this thread spins.
inline void pause_spinning() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// How often a consumer looks before it parks: tens of microseconds, about what parking and waking
/// would cost. 0 where there is one processor, since the producer could not run meanwhile.
inline int spin_count() {
  static const int count = std::thread::hardware_concurrency() > 1 ? 1000 : 0;
  return count;
}

}  // namespace detail

/// A blocking queue, first in, first out, between any number of producers and consumers. All
/// members may be called from any thread; destruction must come after the last call.
///
/// Closing is final, and quick rather than orderly, since it is how an error stops a pipeline:
/// values that nobody has taken are destroyed, every waiting push and pop returns at once, and so
/// does every later one.
template <class T>
class Channel {
 public:
  static constexpr std::size_t kUnbounded = std::numeric_limits<std::size_t>::max();

  /// `capacity` (at least 1) is the number of values after which push() waits.
  explicit Channel(std::size_t capacity = kUnbounded) : capacity_(capacity) {}

  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Appends the value, after waiting for room. Returns false, and destroys the value, once closed.
  bool push(T value) {
    {
      std::unique_lock lock(mutex_);
      has_room_.wait(lock, [&] { return is_closed_ || values_.size() < capacity_; });
      if (is_closed_)
        return false;
      values_.push_back(std::move(value));
      is_worth_locking_.store(true, std::memory_order_release);
    }
    has_value_.notify_one();
    return true;
  }

  /// Takes the oldest value, after waiting for one: first by spinning briefly, then parked. Returns
  /// nullopt once closed.
  std::optional<T> pop() {
    spin();
    std::optional<T> value;
    {
      std::unique_lock lock(mutex_);
      has_value_.wait(lock, [&] { return is_closed_ || !values_.empty(); });
      if (is_closed_)
        return std::nullopt;
      value.emplace(std::move(values_.front()));
      values_.pop_front();
      is_worth_locking_.store(!values_.empty(), std::memory_order_release);
    }
    has_room_.notify_one();
    return value;
  }

  /// Wakes everyone. Does nothing when closed already.
  void close() {
    // Destroyed after the lock is released: a value's destructor may take long.
    std::deque<T> dropped;
    {
      std::lock_guard lock(mutex_);
      is_closed_ = true;
      dropped.swap(values_);
      is_worth_locking_.store(true, std::memory_order_release);
    }
    has_value_.notify_all();
    has_room_.notify_all();
  }

  bool is_closed() const {
    std::lock_guard lock(mutex_);
    return is_closed_;
  }

  /// Values that wait to be taken.
  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return values_.size();
  }

 private:
  void spin() const {
    for (int count = detail::spin_count(); count > 0; --count) {
      if (is_worth_locking_.load(std::memory_order_acquire))
        return;
      detail::pause_spinning();
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable has_value_;
  std::condition_variable has_room_;
  std::deque<T> values_;
  const std::size_t capacity_;
  bool is_closed_ = false;
  /// A hint for spinning, read without the lock: there is a value, or the channel is closed.
  std::atomic<bool> is_worth_locking_{false};
};

}  // namespace gpipe
