// IQ2_S: f16 d, 32 low bytes of grid indices, one for 8 weights, 32 sign bytes, 8 bytes of two high index bits each,
// then 4-bit scales, one for 16 weights. w = d * (0.5 + scale) / 4 * magnitude * sign.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/iq_decode.h"
#include "formats/codec/iq_grids.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 256;
  const uint8_t* block = payload + row * blocks * 82;
  for (uint64_t b = 0; b < blocks; ++b, block += 82, out += 256) {
    const float d = half_to_float(load_u16(block));
    for (int v = 0; v < 32; ++v) {
      const int index = block[2 + v] | (block[66 + v / 4] >> (v % 4 * 2) & 3) << 8;
      const int sub = block[74 + v / 4] >> (v % 4 / 2 * 4) & 15;
      const float scale = d * (0.5f + static_cast<float>(sub)) * 0.25f;
      decode_grid8(iq2_s_grid()[index], block[34 + v], scale, out + 8 * v);
    }
  }
}

} // namespace

constinit const Codec kIQ2SCodec = {
    .id = CodecId::kIQ2_S,
    .name = "iq2_s",
    .cmf_name = "",
    .gguf_name = "IQ2_S",
    .cmf_code = -1,
    .gguf_code = 22,
    .block = 256,
    .block_bytes = 82,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kCodebook,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
