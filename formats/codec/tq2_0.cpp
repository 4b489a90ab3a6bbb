// TQ2_0: 64 bytes of 2-bit codes in Q2_K's order, f16 d at the end. w = (code - 1) * d.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 256;
  const uint8_t* block = payload + row * blocks * 66;
  for (uint64_t b = 0; b < blocks; ++b, block += 66, out += 256) {
    const float d = half_to_float(load_u16(block + 64));
    for (int i = 0; i < 256; ++i)
      out[i] = static_cast<float>((block[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3) - 1) * d;
  }
}

} // namespace

constinit const Codec kTQ20Codec = {
    .id = CodecId::kTQ2_0,
    .name = "tq2_0",
    .cmf_name = "",
    .gguf_name = "TQ2_0",
    .cmf_code = -1,
    .gguf_code = 35,
    .block = 256,
    .block_bytes = 66,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
