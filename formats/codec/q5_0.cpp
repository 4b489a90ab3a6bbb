// Q5_0: f16 d, u32 of fifth bits (bit i belongs to weight i), 16 bytes of nibbles as in Q4_0. w = d * (code - 16).

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 32;
  const uint8_t* block = payload + row * blocks * 22;
  for (uint64_t b = 0; b < blocks; ++b, block += 22, out += 32) {
    const float d = half_to_float(load_u16(block));
    const uint32_t high = load_u32(block + 2);
    for (int i = 0; i < 16; ++i) {
      const int low_half = (block[6 + i] & 15) | static_cast<int>(high >> i & 1) << 4;
      const int high_half = (block[6 + i] >> 4) | static_cast<int>(high >> (16 + i) & 1) << 4;
      out[i] = static_cast<float>(low_half - 16) * d;
      out[16 + i] = static_cast<float>(high_half - 16) * d;
    }
  }
}

} // namespace

constinit const Codec kQ50Codec = {
    .id = CodecId::kQ5_0,
    .name = "q5_0",
    .cmf_name = "",
    .gguf_name = "Q5_0",
    .cmf_code = -1,
    .gguf_code = 6,
    .block = 32,
    .block_bytes = 22,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
