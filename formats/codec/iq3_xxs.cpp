// IQ3_XXS: f16 d, 64 grid indices, one for 4 weights, then for each 32 weights a word with four 7-bit sign indices (one
// for 8 weights) and, in its top four bits, a scale. w = d * (0.5 + scale) / 2 * magnitude * sign.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/iq_decode.h"
#include "formats/codec/iq_grids.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 256;
  const uint8_t* block = payload + row * blocks * 98;
  for (uint64_t b = 0; b < blocks; ++b, block += 98, out += 256) {
    const float d = half_to_float(load_u16(block));
    for (int q = 0; q < 64; ++q) {
      const uint32_t signs = load_u32(block + 66 + q / 8 * 4);
      const float scale = d * (0.5f + static_cast<float>(signs >> 28)) * 0.5f;
      const uint8_t sign = iq_signs(signs >> (q % 8 / 2 * 7) & 127);
      decode_grid4(iq3_xxs_grid()[block[2 + q]], sign >> (q % 2 * 4), scale, out + 4 * q);
    }
  }
}

} // namespace

constinit const Codec kIQ3XXSCodec = {
    .id = CodecId::kIQ3_XXS,
    .name = "iq3_xxs",
    .cmf_name = "",
    .gguf_name = "IQ3_XXS",
    .cmf_code = -1,
    .gguf_code = 18,
    .block = 256,
    .block_bytes = 98,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kCodebook,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
