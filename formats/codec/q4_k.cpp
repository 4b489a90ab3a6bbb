// Q4_K: f16 d, f16 dmin, 12 bytes of 6-bit scales and minimums, 128 bytes of nibbles: 32 bytes serve a pair of
// sub-blocks of 32, the first in the low halves. w = (d * scale) * nibble - dmin * minimum.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/k_quant_scales.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 256;
  const uint8_t* block = payload + row * blocks * 144;
  for (uint64_t b = 0; b < blocks; ++b, block += 144, out += 256) {
    const float d = half_to_float(load_u16(block));
    const float dmin = half_to_float(load_u16(block + 2));
    for (int s = 0; s < 8; ++s) {
      const KQuantScale sub = k_quant_scale(block + 4, s);
      const float scale = d * static_cast<float>(sub.scale);
      const float minimum = dmin * static_cast<float>(sub.minimum);
      const uint8_t* codes = block + 16 + 32 * (s / 2);
      for (int l = 0; l < 32; ++l)
        out[32 * s + l] = scale * static_cast<float>(codes[l] >> (s % 2 * 4) & 15) - minimum;
    }
  }
}

} // namespace

constinit const Codec kQ4KCodec = {
    .id = CodecId::kQ4_K,
    .name = "q4_k",
    .cmf_name = "",
    .gguf_name = "Q4_K",
    .cmf_code = -1,
    .gguf_code = 12,
    .block = 256,
    .block_bytes = 144,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
