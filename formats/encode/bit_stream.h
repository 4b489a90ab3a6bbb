#pragma once

#include <cstdint>

namespace cortiq::formats {

/// Writes codes of up to 8 bits back to back, highest bit first, into zeroed bytes.
class BitStream {
public:
  explicit BitStream(uint8_t* out) : out_(out) {}

  void put(uint32_t code, int width) {
    for (int b = width - 1; b >= 0; --b, ++at_)
      out_[at_ / 8] |= static_cast<uint8_t>((code >> b & 1) << (7 - at_ % 8));
  }

private:
  uint8_t* out_;
  uint64_t at_ = 0; ///< in bits
};

} // namespace cortiq::formats
