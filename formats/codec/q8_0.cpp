// Q8_0: f16 d, 32 int8 codes. w = d * code.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 32;
  const uint8_t* block = payload + row * blocks * 34;
  for (uint64_t b = 0; b < blocks; ++b, block += 34, out += 32) {
    const float d = half_to_float(load_u16(block));
    for (int i = 0; i < 32; ++i)
      out[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * d;
  }
}

} // namespace

constinit const Codec kQ80Codec = {
    .id = CodecId::kQ8_0,
    .name = "q8_0",
    .cmf_name = "",
    .gguf_name = "Q8_0",
    .cmf_code = -1,
    .gguf_code = 8,
    .block = 32,
    .block_bytes = 34,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
