// Q1_0: f16 d, 128 bits, lowest first. A set bit is +d, a clear one -d.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 128;
  const uint8_t* block = payload + row * blocks * 18;
  for (uint64_t b = 0; b < blocks; ++b, block += 18, out += 128) {
    const float d = half_to_float(load_u16(block));
    for (int i = 0; i < 128; ++i)
      out[i] = block[2 + i / 8] >> (i % 8) & 1 ? d : -d;
  }
}

} // namespace

constinit const Codec kQ10Codec = {
    .id = CodecId::kQ1_0,
    .name = "q1_0",
    .cmf_name = "",
    .gguf_name = "Q1_0",
    .cmf_code = -1,
    .gguf_code = 41,
    .block = 128,
    .block_bytes = 18,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
