// Q4_1: f16 d, f16 m, 16 bytes of nibbles; byte i holds weights i (low half) and 16 + i. w = d * nibble + m.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 32;
  const uint8_t* block = payload + row * blocks * 20;
  for (uint64_t b = 0; b < blocks; ++b, block += 20, out += 32) {
    const float d = half_to_float(load_u16(block));
    const float m = half_to_float(load_u16(block + 2));
    for (int i = 0; i < 16; ++i) {
      out[i] = static_cast<float>(block[4 + i] & 15) * d + m;
      out[16 + i] = static_cast<float>(block[4 + i] >> 4) * d + m;
    }
  }
}

} // namespace

constinit const Codec kQ41Codec = {
    .id = CodecId::kQ4_1,
    .name = "q4_1",
    .cmf_name = "",
    .gguf_name = "Q4_1",
    .cmf_code = -1,
    .gguf_code = 3,
    .block = 32,
    .block_bytes = 20,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
