#include "gpipe/core/allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "gpipe/base/error.h"

namespace gpipe {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr int kNumClasses = 256;

/// Four size classes between powers of two: at most a fifth is wasted.
int size_class(size_t num_bytes) {
  if (num_bytes <= kAlignment)
    return 0;
  const int log = std::bit_width(num_bytes - 1) - 1;
  const int quarter = static_cast<int>((num_bytes - 1) >> (log - 2)) & 3;
  return (log - 6) * 4 + quarter + 1;
}

size_t class_bytes(int index) {
  if (index == 0)
    return kAlignment;
  const int log = (index - 1) / 4 + 6;
  const int quarter = (index - 1) % 4;
  return (size_t{1} << log) / 4 * static_cast<size_t>(5 + quarter);
}

class SpinLock {
 public:
  void lock() {
    // A holder that lost its core would be waited for in vain.
    for (int spins = 0; flag_.test_and_set(std::memory_order_acquire); ++spins) {
      if (spins % 64 == 63)
        std::this_thread::yield();
    }
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
};

/// Lies before every block, one alignment unit long.
struct Header {
  Account* account;
  size_t num_bytes;  // asked for
  int size_class;
  Header* next_free;
};
static_assert(sizeof(Header) <= kAlignment);

void release_all_free_blocks();

}  // namespace

class Account {
 public:
  explicit Account(std::string name) : name_(std::move(name)) {}

  void* allocate(size_t num_bytes) {
    const int index = size_class(num_bytes);
    Header* header = take_free(index, num_bytes);
    if (header == nullptr) {
      header = new_block(class_bytes(index));
      std::lock_guard lock(lock_);
      count(num_bytes);
    }
    *header = {this, num_bytes, index, nullptr};
    return reinterpret_cast<char*>(header) + kAlignment;
  }

  void release(Header* header) {
    std::lock_guard lock(lock_);
    live_ -= static_cast<int64_t>(header->num_bytes);
    Header*& first = free_[static_cast<size_t>(header->size_class)];
    header->next_free = first;
    first = header;
  }

  /// Gives blocks that nobody uses back to the system.
  void release_free_blocks() {
    std::array<Header*, kNumClasses> taken{};
    {
      std::lock_guard lock(lock_);
      taken.swap(free_);
    }
    for (Header* header : taken) {
      while (header != nullptr)
        std::free(std::exchange(header, header->next_free));
    }
  }

  AccountBytes bytes() const {
    std::lock_guard lock(lock_);
    return {live_, peak_};
  }

  void rename(std::string name) { name_ = std::move(name); }

  void reset_peak() {
    std::lock_guard lock(lock_);
    peak_ = live_;
  }

 private:
  Header* take_free(int index, size_t num_bytes) {
    std::lock_guard lock(lock_);
    Header* header = free_[static_cast<size_t>(index)];
    if (header == nullptr)
      return nullptr;
    free_[static_cast<size_t>(index)] = header->next_free;
    count(num_bytes);
    return header;
  }

  void count(size_t num_bytes) {
    live_ += static_cast<int64_t>(num_bytes);
    peak_ = std::max(peak_, live_);
  }

  Header* new_block(size_t num_bytes) const {
    const size_t total = num_bytes + kAlignment;
    const bool is_huge = total >= kHugePage;
    const size_t alignment = is_huge ? kHugePage : kAlignment;
    void* memory = std::aligned_alloc(alignment, total);
    if (memory == nullptr) {
      release_all_free_blocks();
      memory = std::aligned_alloc(alignment, total);
    }
    GPIPE_CHECK(
        memory != nullptr,
        "[memory] no ",
        num_bytes,
        " bytes of memory are left (account ",
        name_,
        "); use more micro-batches, re-materialization, or a smaller mini-batch");
    if (is_huge)
      madvise(memory, total, MADV_HUGEPAGE);
    return static_cast<Header*>(memory);
  }

  std::string name_;
  mutable SpinLock lock_;
  std::array<Header*, kNumClasses> free_{};
  int64_t live_ = 0;
  int64_t peak_ = 0;
};

namespace {

/// All accounts there are. They live as long as the process.
struct Accounts {
  std::mutex mutex;
  std::vector<Account*> all;
  std::vector<Account*> idle;
};

Accounts& accounts() {
  static auto* registry = new Accounts();
  return *registry;
}

Account* new_account(std::string name) {
  auto* account = new Account(std::move(name));
  accounts().all.push_back(account);
  return account;
}

void release_all_free_blocks() {
  std::lock_guard lock(accounts().mutex);
  for (Account* account : accounts().all)
    account->release_free_blocks();
}

Account& main_account() {
  static Account* account = [] {
    std::lock_guard lock(accounts().mutex);
    return new_account("main");
  }();
  return *account;
}

thread_local Account* current_account = nullptr;

void release_block(void* data) {
  if (data == nullptr)
    return;
  auto* header = reinterpret_cast<Header*>(static_cast<char*>(data) - kAlignment);
  header->account->release(header);
}

class MeteredAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t num_bytes) override {
    if (num_bytes == 0)
      return {nullptr, nullptr, &release_block, c10::Device(c10::kCPU)};
    Account& account = current_account != nullptr ? *current_account : main_account();
    void* data = account.allocate(num_bytes);
    return {data, data, &release_block, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release_block; }
  void copy_data(void* target, const void* source, size_t num_bytes) const override {
    std::memcpy(target, source, num_bytes);
  }
};

std::atomic<bool> metered{false};

}  // namespace

void use_metered_allocator() {
  static std::once_flag once;
  std::call_once(once, [] {
    c10::SetCPUAllocator(new MeteredAllocator(), /*priority=*/100);
    metered = true;
  });
}

bool is_metered() {
  return metered;
}

std::shared_ptr<Account> make_account(std::string name) {
  Accounts& registry = accounts();
  std::lock_guard lock(registry.mutex);
  Account* account = nullptr;
  if (registry.idle.empty()) {
    account = new_account(std::move(name));
  } else {
    account = registry.idle.back();
    registry.idle.pop_back();
    account->rename(std::move(name));
    account->reset_peak();
  }
  return {account, [](Account* done) {
            std::lock_guard done_lock(accounts().mutex);
            accounts().idle.push_back(done);
          }};
}

AccountBytes bytes(const Account& account) {
  return account.bytes();
}

void reset_peak(Account& account) {
  account.reset_peak();
}

ChargeTo::ChargeTo(Account& account) : previous_(std::exchange(current_account, &account)) {}

ChargeTo::~ChargeTo() {
  current_account = previous_;
}

}  // namespace gpipe
