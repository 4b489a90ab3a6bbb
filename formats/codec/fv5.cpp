// FV5: f32 low and high scale, then three planes of 256 bits, lowest first: plus, minus, and which scale.
// w = (plus - minus) * scale. FV5B: f32 scale, 256 int8 codes. w = scale * code.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

int bit(const uint8_t* plane, int i) {
  return plane[i / 8] >> (i % 8) & 1;
}

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 256;
  const uint8_t* block = payload + row * blocks * 104;
  for (uint64_t b = 0; b < blocks; ++b, block += 104, out += 256) {
    const float low = std::bit_cast<float>(load_u32(block));
    const float high = std::bit_cast<float>(load_u32(block + 4));
    for (int i = 0; i < 256; ++i)
      out[i] = static_cast<float>(bit(block + 8, i) - bit(block + 40, i)) * (bit(block + 72, i) ? high : low);
  }
}

void decode_row_b(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 256;
  const uint8_t* block = payload + row * blocks * 260;
  for (uint64_t b = 0; b < blocks; ++b, block += 260, out += 256) {
    const float scale = std::bit_cast<float>(load_u32(block));
    for (int i = 0; i < 256; ++i)
      out[i] = scale * static_cast<float>(static_cast<int8_t>(block[4 + i]));
  }
}

} // namespace

constinit const Codec kFV5Codec = {
    .id = CodecId::kFV5,
    .name = "fv5",
    .cmf_name = "",
    .gguf_name = "FV5",
    .cmf_code = -1,
    .gguf_code = 43,
    .block = 256,
    .block_bytes = 104,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kFloat,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

constinit const Codec kFV5BCodec = {
    .id = CodecId::kFV5B,
    .name = "fv5b",
    .cmf_name = "",
    .gguf_name = "FV5B",
    .cmf_code = -1,
    .gguf_code = 44,
    .block = 256,
    .block_bytes = 260,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row_b,
};

} // namespace cortiq::formats
