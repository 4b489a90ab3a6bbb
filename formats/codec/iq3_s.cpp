// IQ3_S: f16 d, 64 low bytes of grid indices, one for 4 weights, 8 bytes of ninth bits, 32 sign bytes, then 4-bit
// scales, one for 32 weights. w = d * (1 + 2 * scale) * magnitude * sign.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/iq_decode.h"
#include "formats/codec/iq_grids.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 256;
  const uint8_t* block = payload + row * blocks * 110;
  for (uint64_t b = 0; b < blocks; ++b, block += 110, out += 256) {
    const float d = half_to_float(load_u16(block));
    for (int q = 0; q < 64; ++q) {
      const int index = block[2 + q] | (block[66 + q / 8] >> (q % 8) & 1) << 8;
      const int sub = block[106 + q / 16] >> (q % 16 / 8 * 4) & 15;
      const float scale = d * static_cast<float>(1 + 2 * sub);
      decode_grid4(iq3_s_grid()[index], block[74 + q / 2] >> (q % 2 * 4), scale, out + 4 * q);
    }
  }
}

} // namespace

constinit const Codec kIQ3SCodec = {
    .id = CodecId::kIQ3_S,
    .name = "iq3_s",
    .cmf_name = "",
    .gguf_name = "IQ3_S",
    .cmf_code = -1,
    .gguf_code = 21,
    .block = 256,
    .block_bytes = 110,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kCodebook,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
