// Q5_1: f16 d, f16 m, u32 of fifth bits (bit i belongs to weight i), 16 bytes of nibbles as in Q4_0. w = d * code + m.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block));
  const float m = half_to_float(load_u16(block + 2));
  const uint32_t high = load_u32(block + 4);
  for (int i = 0; i < 16; ++i) {
    const int low_half = (block[8 + i] & 15) | static_cast<int>(high >> i & 1) << 4;
    const int high_half = (block[8 + i] >> 4) | static_cast<int>(high >> (16 + i) & 1) << 4;
    out[i] = static_cast<float>(low_half) * d + m;
    out[16 + i] = static_cast<float>(high_half) * d + m;
  }
}

} // namespace

constinit const Codec kQ51Codec =
    gguf_blocks<32, 24, decode_block>(CodecId::kQ5_1, "q5_1", "Q5_1", 7, DotForm::kAffineInt);

} // namespace cortiq::formats
