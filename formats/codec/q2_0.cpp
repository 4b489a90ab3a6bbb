// Q2_0: f16 d, 2-bit codes, four neighbouring weights a byte, the first in the lowest bits; upstream's blocks have 64
// weights, those of PQ2_0 (in older files also under upstream's type id) 128. w = (code - 1) * d.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

template <int kWeights>
void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(load_u16(block));
  for (int i = 0; i < kWeights; ++i)
    out[i] = static_cast<float>((block[2 + i / 4] >> (i % 4 * 2) & 3) - 1) * d;
}

} // namespace

constinit const Codec kQ20Codec =
    gguf_blocks<64, 18, decode_block<64>>(CodecId::kQ2_0, "q2_0", "Q2_0", 42, DotForm::kAffineInt);

constinit const Codec kQ20G128Codec =
    gguf_blocks<128, 34, decode_block<128>>(CodecId::kQ2_0_G128, "q2_0_g128", "PQ2_0", 142, DotForm::kAffineInt);

} // namespace cortiq::formats
