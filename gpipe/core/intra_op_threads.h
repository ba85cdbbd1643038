#pragma once

#include <ATen/Parallel.h>

namespace gpipe {

/// This thread's number of intra-op threads while it lives: kernels, and so bits, depend on it.
class IntraOpThreads {
 public:
  explicit IntraOpThreads(int num_threads) : previous_(at::get_num_threads()) {
    at::set_num_threads(num_threads);
  }
  ~IntraOpThreads() { at::set_num_threads(previous_); }
  IntraOpThreads(const IntraOpThreads&) = delete;
  IntraOpThreads& operator=(const IntraOpThreads&) = delete;

 private:
  int previous_;
};

}  // namespace gpipe
