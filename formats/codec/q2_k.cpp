// Q2_K: 16 bytes of 4-bit scales (low) and 4-bit minimums, one of each for 16 weights, 64 bytes of 2-bit codes, f16 d,
// f16 dmin at the end. A half of 128 weights keeps its four runs of 32 in the four bit pairs of 32 bytes.
// w = (d * scale) * code - dmin * minimum.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 256;
  const uint8_t* block = payload + row * blocks * 84;
  for (uint64_t b = 0; b < blocks; ++b, block += 84, out += 256) {
    const float d = half_to_float(load_u16(block + 80));
    const float dmin = half_to_float(load_u16(block + 82));
    for (int i = 0; i < 256; ++i) {
      const int code = block[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
      const uint8_t sub = block[i / 16];
      out[i] = d * static_cast<float>(sub & 15) * static_cast<float>(code) - dmin * static_cast<float>(sub >> 4);
    }
  }
}

} // namespace

constinit const Codec kQ2KCodec = {
    .id = CodecId::kQ2_K,
    .name = "q2_k",
    .cmf_name = "",
    .gguf_name = "Q2_K",
    .cmf_code = -1,
    .gguf_code = 10,
    .block = 256,
    .block_bytes = 84,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
