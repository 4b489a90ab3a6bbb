// G8_0: four bf16 scales, one for eight weights, then 2-bit codes, four neighbouring weights a byte. w = (code - 1) *
// d.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 32;
  const uint8_t* block = payload + row * blocks * 16;
  for (uint64_t b = 0; b < blocks; ++b, block += 16, out += 32) {
    for (int i = 0; i < 32; ++i)
      out[i] =
          static_cast<float>((block[8 + i / 4] >> (i % 4 * 2) & 3) - 1) * bfloat_to_float(load_u16(block + i / 8 * 2));
  }
}

} // namespace

constinit const Codec kG80Codec = {
    .id = CodecId::kG8_0,
    .name = "g8_0",
    .cmf_name = "",
    .gguf_name = "G8_0",
    .cmf_code = -1,
    .gguf_code = 143,
    .block = 32,
    .block_bytes = 16,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
