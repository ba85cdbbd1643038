#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gpipe {

/// Bytes of CPU tensors on one account: what threads that charge it have allocated and nobody has
/// freed.
struct AccountBytes {
  int64_t live = 0;
  int64_t peak = 0;
};

/// Makes the pooled, metered allocator LibTorch's CPU allocator for the rest of the process.
/// Idempotent. Call it before the first operator runs: tensors from before are freed rightly but not
/// counted, and memory that an operator keeps for itself may be given back to the wrong allocator.
void use_metered_allocator();
bool is_metered();

/// An account to charge. Accounts are never destroyed, for tensors may outlive whoever made them; when the last pointer to
/// one goes, it waits, with its free blocks, for the next make_account().
class Account;
std::shared_ptr<Account> make_account(std::string name);
AccountBytes bytes(const Account& account);
void reset_peak(Account& account);

/// Charges allocations of this thread to an account while it lives.
class ChargeTo {
 public:
  explicit ChargeTo(Account& account);
  ~ChargeTo();
  ChargeTo(const ChargeTo&) = delete;
  ChargeTo& operator=(const ChargeTo&) = delete;

 private:
  Account* previous_;
};

}  // namespace gpipe
