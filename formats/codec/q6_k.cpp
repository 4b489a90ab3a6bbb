// Q6_K: 128 bytes of low nibbles, 64 bytes of high pairs, 16 int8 scales, f16 d at the end. A half of 128 weights has
// four sub-blocks j of 32: their nibbles share 64 bytes (j % 2 picks the 32, j / 2 the half of a byte), their pairs 32.
// w = (d * scale of 16 weights) * (code - 32).

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const uint8_t* scales = block + 192;
  const float d = half_to_float(load_u16(block + 208));
  for (int half = 0; half < 2; ++half)
    for (int j = 0; j < 4; ++j) {
      const uint8_t* low = block + 64 * half + 32 * (j % 2);
      const uint8_t* high = block + 128 + 32 * half;
      for (int l = 0; l < 32; ++l) {
        const int i = 128 * half + 32 * j + l;
        const int code = (low[l] >> (j / 2 * 4) & 15) | (high[l] >> (2 * j) & 3) << 4;
        out[i] = d * static_cast<float>(static_cast<int8_t>(scales[i / 16])) * static_cast<float>(code - 32);
      }
    }
}

} // namespace

constinit const Codec kQ6KCodec =
    gguf_blocks<256, 210, decode_block>(CodecId::kQ6_K, "q6_k", "Q6_K", 14, DotForm::kAffineInt);

} // namespace cortiq::formats
