#pragma once

// Codecs whose rows are contiguous blocks, and nothing else.

#include <cstdint>

namespace cortiq::formats {

/// Codec::decode_row where a row is blocks of kWeights weights in kBytes bytes, one after the other. kDecode is
/// void(const uint8_t* block, float* out): it writes the weights of one block.
template <uint64_t kWeights, uint64_t kBytes, auto kDecode>
void decode_blocks(const uint8_t* payload, uint64_t, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / kWeights;
  const uint8_t* block = payload + row * blocks * kBytes;
  for (uint64_t b = 0; b < blocks; ++b, block += kBytes, out += kWeights)
    kDecode(block, out);
}

} // namespace cortiq::formats
