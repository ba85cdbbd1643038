#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace gpipe::data {

/// Random numbers that depend only on the key, and are the same on every machine and with every
/// standard library (SplitMix64 from a hashed key; the distributions of <random> are not portable).
/// Cheap to make: one per sample. Not for secrets. Not thread-safe.
class KeyedRandom {
 public:
  /// A generator for the key, for example {seed, epoch, sample}. Different keys, also of different
  /// lengths, give unrelated sequences.
  explicit KeyedRandom(std::initializer_list<uint64_t> key) {
    for (uint64_t part : key)
      state_ = mix(state_ + kIncrement + part);
  }

  /// 64 random bits.
  uint64_t next() { return mix(state_ += kIncrement); }

  /// Uniform in [0, bound), without bias. `bound` is at least 1.
  uint64_t below(uint64_t bound) {
    const uint64_t biased = -bound % bound;
    uint64_t bits = next();
    while (bits < biased)
      bits = next();
    return bits % bound;
  }

  /// Uniform in [0, 1), in steps of 2^-24.
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24F; }

  /// Mean 0, variance 1, within (-6, 6): the sum of twelve uniform numbers of 16 bits, which is
  /// close to a normal distribution and exact in float on every machine.
  float normal() {
    int64_t sum = 0;
    for (int draw = 0; draw < 3; ++draw) {
      const uint64_t bits = next();
      for (int shift = 0; shift < 64; shift += 16)
        sum += static_cast<int64_t>((bits >> shift) & 0xFFFF);
    }
    return static_cast<float>(2 * sum - 12 * 0xFFFF) * 0x1p-17F;
  }

 private:
  static constexpr uint64_t kIncrement = 0x9E3779B97F4A7C15;

  static constexpr uint64_t mix(uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
    return bits ^ (bits >> 31);
  }

  uint64_t state_ = 0;
};

/// First part of a key after the seed, so that equal seeds do not give related draws.
enum Draw : uint64_t { kDrawOrder = 1, kDrawAugment = 2, kDrawOffset = 3, kDrawSynthetic = 4 };

/// The numbers 0 to size - 1 in an order that depends only on (size, seed, epoch).
inline std::vector<int64_t> make_permutation(int64_t size, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<int64_t>(i);
  KeyedRandom random{seed, kDrawOrder, static_cast<uint64_t>(epoch)};
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace gpipe::data
