// TQ1_0: 48 bytes of five base-3 digits, 4 bytes of four, f16 d at the end. The digits of a byte are 32 weights apart
// in the first 32 bytes, 16 in the next 16, 4 in the last 4. w = (digit - 1) * d.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"
#include "formats/codec/ternary.h"

namespace cortiq::formats {
namespace {

int digit(const uint8_t* block, int i) {
  if (i < 160)
    return ternary_digit(block[i % 32], i / 32);
  if (i < 240)
    return ternary_digit(block[32 + i % 16], (i - 160) / 16);
  return ternary_digit(block[48 + i % 4], (i - 240) / 4);
}

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 256;
  const uint8_t* block = payload + row * blocks * 54;
  for (uint64_t b = 0; b < blocks; ++b, block += 54, out += 256) {
    const float d = half_to_float(load_u16(block + 52));
    for (int i = 0; i < 256; ++i)
      out[i] = static_cast<float>(digit(block, i) - 1) * d;
  }
}

} // namespace

constinit const Codec kTQ10Codec = {
    .id = CodecId::kTQ1_0,
    .name = "tq1_0",
    .cmf_name = "",
    .gguf_name = "TQ1_0",
    .cmf_code = -1,
    .gguf_code = 34,
    .block = 256,
    .block_bytes = 54,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
