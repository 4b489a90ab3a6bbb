// Q8_K: f32 d, 256 int8 codes, 16 int16 sums of 16 codes each, which play no part in decoding. w = d * code.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = std::bit_cast<float>(load_u32(block));
  for (int i = 0; i < 256; ++i)
    out[i] = d * static_cast<float>(static_cast<int8_t>(block[4 + i]));
}

} // namespace

constinit const Codec kQ8KCodec =
    gguf_blocks<256, 292, decode_block>(CodecId::kQ8_K, "q8_k", "Q8_K", 15, DotForm::kAffineInt);

} // namespace cortiq::formats
