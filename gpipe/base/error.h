#pragma once

#include <exception>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>

namespace gpipe {

/// An error that the caller can mend. The text starts with the part of the library in brackets,
/// holds the offending values, and names the cure: `[partition] 3 stages for 2 layers; use at most
/// 2 stages`.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A broken invariant of this library: a defect of ours, not of the caller.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {

template <class... Parts>
std::string concatenate(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

}  // namespace detail

/// Holds the first exception that any thread reports; later ones are dropped. All members may be
/// called from any thread.
class FirstError {
 public:
  /// Keeps `error` if it is the first. Returns whether it was.
  bool set(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    if (error_)
      return false;
    error_ = std::move(error);
    return true;
  }

  bool has_error() const {
    std::lock_guard lock(mutex_);
    return error_ != nullptr;
  }

  /// Throws the kept exception, and forgets it. Does nothing where there is none.
  void rethrow() {
    std::exception_ptr error;
    {
      std::lock_guard lock(mutex_);
      error = std::move(error_);
      error_ = nullptr;
    }
    if (error)
      std::rethrow_exception(error);
  }

 private:
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace gpipe

/// Throws gpipe::Error with the parts after the condition, streamed one after the other, unless the
/// condition holds.
#define GPIPE_CHECK(condition, ...)                                    \
  do {                                                                 \
    if (!(condition)) {                                                \
      throw ::gpipe::Error(::gpipe::detail::concatenate(__VA_ARGS__)); \
    }                                                                  \
  } while (false)

/// Throws gpipe::InternalError unless the condition holds.
#define GPIPE_ASSERT(condition, ...)                             \
  do {                                                           \
    if (!(condition)) {                                          \
      throw ::gpipe::InternalError(::gpipe::detail::concatenate( \
          "[internal] ",                                         \
          #condition,                                            \
          " does not hold at ",                                  \
          __FILE__,                                              \
          ":",                                                   \
          __LINE__,                                              \
          ". ",                                                  \
          __VA_ARGS__));                                         \
    }                                                            \
  } while (false)
