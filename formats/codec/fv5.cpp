// FV5: f32 low and high scale, then three planes of 256 bits, lowest first: plus, minus, and which scale.
// w = (plus - minus) * scale. FV5B: f32 scale, 256 int8 codes. w = scale * code.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

int bit(const uint8_t* plane, int i) {
  return plane[i / 8] >> (i % 8) & 1;
}

void decode_block(const uint8_t* block, float* out) {
  const float low = std::bit_cast<float>(load_u32(block));
  const float high = std::bit_cast<float>(load_u32(block + 4));
  for (int i = 0; i < 256; ++i)
    out[i] = static_cast<float>(bit(block + 8, i) - bit(block + 40, i)) * (bit(block + 72, i) ? high : low);
}

void decode_block_b(const uint8_t* block, float* out) {
  const float scale = std::bit_cast<float>(load_u32(block));
  for (int i = 0; i < 256; ++i)
    out[i] = scale * static_cast<float>(static_cast<int8_t>(block[4 + i]));
}

} // namespace

constinit const Codec kFV5Codec = gguf_blocks<256, 104, decode_block>(CodecId::kFV5, "fv5", "FV5", 43, DotForm::kFloat);

constinit const Codec kFV5BCodec =
    gguf_blocks<256, 260, decode_block_b>(CodecId::kFV5B, "fv5b", "FV5B", 44, DotForm::kAffineInt);

} // namespace cortiq::formats
