// G8_0: four bf16 scales, one for eight weights, then 2-bit codes, four neighbouring weights a byte. w = (code - 1) *
// d.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  for (int i = 0; i < 32; ++i)
    out[i] =
        static_cast<float>((block[8 + i / 4] >> (i % 4 * 2) & 3) - 1) * bfloat_to_float(load_u16(block + i / 8 * 2));
}

} // namespace

constinit const Codec kG80Codec =
    gguf_blocks<32, 16, decode_block>(CodecId::kG8_0, "g8_0", "G8_0", 143, DotForm::kAffineInt);

} // namespace cortiq::formats
