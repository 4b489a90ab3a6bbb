// Q4_0: f16 d, 16 bytes of nibbles; byte i holds weights i (low half) and 16 + i. w = (nibble - 8) * d.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 32;
  const uint8_t* block = payload + row * blocks * 18;
  for (uint64_t b = 0; b < blocks; ++b, block += 18, out += 32) {
    const float d = half_to_float(load_u16(block));
    for (int i = 0; i < 16; ++i) {
      out[i] = static_cast<float>((block[2 + i] & 15) - 8) * d;
      out[16 + i] = static_cast<float>((block[2 + i] >> 4) - 8) * d;
    }
  }
}

} // namespace

constinit const Codec kQ40Codec = {
    .id = CodecId::kQ4_0,
    .name = "q4_0",
    .cmf_name = "",
    .gguf_name = "Q4_0",
    .cmf_code = -1,
    .gguf_code = 2,
    .block = 32,
    .block_bytes = 18,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
