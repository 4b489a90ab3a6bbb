// Q5_0: f16 d, u32 of fifth bits (bit i belongs to weight i), 16 bytes of nibbles as in Q4_0. w = d * (code - 16).

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block));
  const uint32_t high = load_u32(block + 2);
  for (int i = 0; i < 16; ++i) {
    const int low_half = (block[6 + i] & 15) | static_cast<int>(high >> i & 1) << 4;
    const int high_half = (block[6 + i] >> 4) | static_cast<int>(high >> (16 + i) & 1) << 4;
    out[i] = static_cast<float>(low_half - 16) * d;
    out[16 + i] = static_cast<float>(high_half - 16) * d;
  }
}

} // namespace

constinit const Codec kQ50Codec =
    gguf_blocks<32, 22, decode_block>(CodecId::kQ5_0, "q5_0", "Q5_0", 6, DotForm::kAffineInt);

} // namespace cortiq::formats
