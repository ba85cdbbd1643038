#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "gpipe/base/error.h"

namespace gpipe {

/// Persistent threads, one per rank of this process, that run one function at a time side by side.
class WorkerThreads {
 public:
  /// `on_start(worker)` runs first on each thread.
  explicit WorkerThreads(int num_workers, std::function<void(int worker)> on_start = {}) {
    threads_.reserve(static_cast<size_t>(num_workers));
    try {
      for (int worker = 0; worker < num_workers; ++worker)
        start(worker, on_start);
    } catch (const std::system_error& error) {
      const int num_started = size();
      stop();
      throw Error(detail::concatenate(
          "[workers] thread ",
          num_started + 1,
          " of ",
          num_workers,
          " cannot be started: ",
          error.what(),
          "; use fewer stages, or raise the limit on threads"));
    }
  }

  /// Joins the threads.
  ~WorkerThreads() { stop(); }

  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  int size() const { return static_cast<int>(threads_.size()); }

  /// Runs `function(worker)` on every thread and returns when all have returned. The function must not throw. Throws Error
  /// where the threads are at work already: called from one of them, or by two threads at once.
  void run(const std::function<void(int worker)>& function) {
    std::unique_lock lock(mutex_);
    GPIPE_CHECK(
        num_running_ == 0,
        "[pipeline] the pipeline is at work: it cannot be called from its own layers, losses or "
        "observers, nor by two "
        "threads at once");
    function_ = &function;
    num_running_ = size();
    ++generation_;
    wake_.notify_all();
    done_.wait(lock, [this] { return num_running_ == 0; });
    function_ = nullptr;
  }

 private:
  void start(int worker, const std::function<void(int)>& on_start) {
    threads_.emplace_back([this, worker, on_start] {
      if (on_start)
        on_start(worker);
      loop(worker);
    });
  }

  void stop() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (auto& thread : threads_)
      thread.join();
    threads_.clear();
  }

  void loop(int worker) {
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_)
        return;
      seen = generation_;
      const auto* function = function_;
      lock.unlock();
      (*function)(worker);
      lock.lock();
      if (--num_running_ == 0)
        done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  const std::function<void(int)>* function_ = nullptr;
  uint64_t generation_ = 0;
  int num_running_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace gpipe
