// IQ2_XXS: f16 d, then for each 32 weights four 8-bit grid indices and a word with four 7-bit sign indices and, in its
// top four bits, a scale. w = d * (0.5 + scale) / 4 * magnitude * sign.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/iq_decode.h"
#include "formats/codec/iq_grids.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 256;
  const uint8_t* block = payload + row * blocks * 66;
  for (uint64_t b = 0; b < blocks; ++b, block += 66, out += 256) {
    const float d = half_to_float(load_u16(block));
    for (int g = 0; g < 8; ++g) {
      const uint8_t* group = block + 2 + 8 * g;
      const uint32_t signs = load_u32(group + 4);
      const float scale = d * (0.5f + static_cast<float>(signs >> 28)) * 0.25f;
      for (int l = 0; l < 4; ++l)
        decode_grid8(iq2_xxs_grid()[group[l]], iq_signs(signs >> (7 * l) & 127), scale, out + 32 * g + 8 * l);
    }
  }
}

} // namespace

constinit const Codec kIQ2XXSCodec = {
    .id = CodecId::kIQ2_XXS,
    .name = "iq2_xxs",
    .cmf_name = "",
    .gguf_name = "IQ2_XXS",
    .cmf_code = -1,
    .gguf_code = 16,
    .block = 256,
    .block_bytes = 66,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kCodebook,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
