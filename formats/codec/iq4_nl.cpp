// IQ4_NL: f16 d, 16 bytes of nibbles as in Q4_0, each the index of one of 16 levels. w = d * level.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/iq4_levels.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 32;
  const uint8_t* block = payload + row * blocks * 18;
  for (uint64_t b = 0; b < blocks; ++b, block += 18, out += 32) {
    const float d = half_to_float(load_u16(block));
    for (int i = 0; i < 16; ++i) {
      out[i] = static_cast<float>(kIQ4Levels[block[2 + i] & 15]) * d;
      out[16 + i] = static_cast<float>(kIQ4Levels[block[2 + i] >> 4]) * d;
    }
  }
}

} // namespace

constinit const Codec kIQ4NLCodec = {
    .id = CodecId::kIQ4_NL,
    .name = "iq4_nl",
    .cmf_name = "",
    .gguf_name = "IQ4_NL",
    .cmf_code = -1,
    .gguf_code = 20,
    .block = 32,
    .block_bytes = 18,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kTable16,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
