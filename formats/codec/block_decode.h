#pragma once

// Codecs whose rows are contiguous blocks, and nothing else.

#include <cstdint>
#include <string_view>

#include "formats/codec/codec.h"
#include "formats/codec/payload_size.h"

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

/// The row of a codec of GGUF files that is such blocks.
template <uint32_t kWeights, uint32_t kBytes, auto kDecode>
constexpr Codec gguf_blocks(CodecId id, std::string_view name, std::string_view gguf_name, int gguf_code,
                            DotForm form) {
  return {
      .id = id,
      .name = name,
      .cmf_name = "",
      .gguf_name = gguf_name,
      .cmf_code = -1,
      .gguf_code = gguf_code,
      .block = kWeights,
      .block_bytes = kBytes,
      .flat = false,
      .needs_matrix = false,
      .form = form,
      .payload_bytes = contiguous_payload_bytes,
      .decode_row = decode_blocks<kWeights, kBytes, kDecode>,
  };
}

} // namespace cortiq::formats
