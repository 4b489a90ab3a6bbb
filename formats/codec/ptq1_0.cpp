// PTQ1_0: 24 bytes of five base-3 digits, 2 bytes of four, f16 d at the end. The digits of a byte are 16 weights apart
// in the first 16 bytes, 8 in the next 8, 2 in the last 2. w = (digit - 1) * d.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"
#include "formats/codec/ternary.h"

namespace cortiq::formats {
namespace {

int digit(const uint8_t* block, int i) {
  if (i < 80)
    return ternary_digit(block[i % 16], i / 16);
  if (i < 120)
    return ternary_digit(block[16 + i % 8], (i - 80) / 8);
  return ternary_digit(block[24 + i % 2], (i - 120) / 2);
}

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 128;
  const uint8_t* block = payload + row * blocks * 28;
  for (uint64_t b = 0; b < blocks; ++b, block += 28, out += 128) {
    const float d = half_to_float(load_u16(block + 26));
    for (int i = 0; i < 128; ++i)
      out[i] = static_cast<float>(digit(block, i) - 1) * d;
  }
}

} // namespace

constinit const Codec kPTQ10Codec = {
    .id = CodecId::kPTQ1_0,
    .name = "ptq1_0",
    .cmf_name = "",
    .gguf_name = "PTQ1_0",
    .cmf_code = -1,
    .gguf_code = 143,
    .block = 128,
    .block_bytes = 28,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
