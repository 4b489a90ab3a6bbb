// MXFP4 as ggml stores it: a byte of scale exponent, 16 bytes of FP4 codes (weights i and 16 + i share a byte).
// w = twice the code's value * 2^(exponent - 128); 255 is an exponent as any other, and code 8 is +0.

#include "formats/codec/codec_rows.h"
#include "formats/codec/fp4.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 32;
  const uint8_t* block = payload + row * blocks * 17;
  for (uint64_t b = 0; b < blocks; ++b, block += 17, out += 32) {
    const float scale = fp4_half_scale(block[0]);
    for (int i = 0; i < 16; ++i) {
      out[i] = static_cast<float>(kFP4Doubled[block[1 + i] & 15]) * scale;
      out[16 + i] = static_cast<float>(kFP4Doubled[block[1 + i] >> 4]) * scale;
    }
  }
}

} // namespace

constinit const Codec kMXFP4GGMLCodec = {
    .id = CodecId::kMXFP4_GGML,
    .name = "mxfp4_ggml",
    .cmf_name = "",
    .gguf_name = "MXFP4",
    .cmf_code = -1,
    .gguf_code = 39,
    .block = 32,
    .block_bytes = 17,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kTable16,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
