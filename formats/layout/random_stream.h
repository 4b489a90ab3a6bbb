#pragma once

// The generator behind fill_random: SplitMix64, one stream a row, integers only, so that every machine makes the same
// bytes.

#include <cstdint>
#include <cstring>

#include "formats/codec/half.h"

namespace cortiq::formats {

/// Half-precision numbers from `low` to `high` by bit pattern, both of one sign.
struct HalfRange {
  uint16_t low;
  uint16_t high;
};

/// Positive scales around `center`, 20 % to either side: their root mean square is within 1 % of it.
inline HalfRange scales_around(float center) {
  return {float_to_half(0.8f * center), float_to_half(1.2f * center)};
}

class RandomStream {
public:
  RandomStream(uint64_t seed, uint64_t stream) : state_(mix(seed + kStep) ^ mix(stream * kStep + 1)) {}

  uint64_t next() { return mix(state_ += kStep); }

  void bytes(uint8_t* out, uint64_t count) {
    for (; count >= 8; count -= 8, out += 8) {
      const uint64_t word = next();
      std::memcpy(out, &word, 8);
    }
    if (count != 0) {
      const uint64_t word = next();
      std::memcpy(out, &word, count);
    }
  }

  uint16_t half_in(HalfRange range) {
    const uint64_t span = static_cast<uint64_t>(range.high - range.low) + 1;
    return static_cast<uint16_t>(range.low + ((next() >> 32) * span >> 32));
  }

  /// A positive scale up to 20 % to either side of `center`.
  float around(float center) { return center * (1.0f + 0.2f * symmetric()); }

  /// Uniform in (-1, 1), a multiple of 2^-23.
  float symmetric() { return static_cast<float>(static_cast<int64_t>(next()) >> 40) * 0x1p-23f; }

private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

  static uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

  uint64_t state_;
};

} // namespace cortiq::formats
