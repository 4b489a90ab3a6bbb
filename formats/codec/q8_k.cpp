// Q8_K: f32 d, 256 int8 codes, 16 int16 sums of 16 codes each, which play no part in decoding. w = d * code.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 256;
  const uint8_t* block = payload + row * blocks * 292;
  for (uint64_t b = 0; b < blocks; ++b, block += 292, out += 256) {
    const float d = std::bit_cast<float>(load_u32(block));
    for (int i = 0; i < 256; ++i)
      out[i] = d * static_cast<float>(static_cast<int8_t>(block[4 + i]));
  }
}

} // namespace

constinit const Codec kQ8KCodec = {
    .id = CodecId::kQ8_K,
    .name = "q8_k",
    .cmf_name = "",
    .gguf_name = "Q8_K",
    .cmf_code = -1,
    .gguf_code = 15,
    .block = 256,
    .block_bytes = 292,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
