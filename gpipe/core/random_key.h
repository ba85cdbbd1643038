#pragma once

#include <cstdint>
#include <string_view>

namespace gpipe {

/// What a random draw is keyed by, besides the seed.
enum class Draw : uint64_t {
  Parameters = 1,
  Forward = 2,
  Backward = 3,
  Loss = 4,
  LossBackward = 5
};

/// Randomness is keyed, not stored: the generator of a layer that runs micro-batch m of step s starts from
/// mix(seed, draw, s, m, layer), so that forward and recompute draw the same numbers whatever K and whichever thread.
/// The mixing is SplitMix64's finaliser, applied part by part.
constexpr uint64_t mix(uint64_t key, uint64_t part) {
  uint64_t z = key + 0x9e3779b97f4a7c15ULL * (part + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// FNV-1a, 64 bits: a name as a part of a key.
constexpr uint64_t hash_name(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

/// The key under which a layer's parameters are drawn.
constexpr uint64_t parameter_key(uint64_t seed, std::string_view layer) {
  return mix(mix(seed, static_cast<uint64_t>(Draw::Parameters)), hash_name(layer));
}

/// The key of one draw of one layer; `micro_batch` counts over all replicas.
constexpr uint64_t draw_key(
    uint64_t seed, Draw draw, int64_t step, int64_t micro_batch, int64_t layer) {
  uint64_t key = mix(seed, static_cast<uint64_t>(draw));
  key = mix(key, static_cast<uint64_t>(step));
  key = mix(key, static_cast<uint64_t>(micro_batch));
  return mix(key, static_cast<uint64_t>(layer));
}

}  // namespace gpipe
