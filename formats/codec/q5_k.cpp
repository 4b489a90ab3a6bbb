// Q5_K: f16 d, f16 dmin, 12 bytes of 6-bit scales and minimums, 32 bytes of fifth bits (bit s of byte l belongs to
// weight l of sub-block s), 128 bytes of nibbles as in Q4_K. w = (d * scale) * code - dmin * minimum.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/k_quant_scales.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 256;
  const uint8_t* block = payload + row * blocks * 176;
  for (uint64_t b = 0; b < blocks; ++b, block += 176, out += 256) {
    const float d = half_to_float(load_u16(block));
    const float dmin = half_to_float(load_u16(block + 2));
    const uint8_t* high = block + 16;
    for (int s = 0; s < 8; ++s) {
      const KQuantScale sub = k_quant_scale(block + 4, s);
      const float scale = d * static_cast<float>(sub.scale);
      const float minimum = dmin * static_cast<float>(sub.minimum);
      const uint8_t* codes = block + 48 + 32 * (s / 2);
      for (int l = 0; l < 32; ++l) {
        const int code = (codes[l] >> (s % 2 * 4) & 15) | (high[l] >> s & 1) << 4;
        out[32 * s + l] = scale * static_cast<float>(code) - minimum;
      }
    }
  }
}

} // namespace

constinit const Codec kQ5KCodec = {
    .id = CodecId::kQ5_K,
    .name = "q5_k",
    .cmf_name = "",
    .gguf_name = "Q5_K",
    .cmf_code = -1,
    .gguf_code = 13,
    .block = 256,
    .block_bytes = 176,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
