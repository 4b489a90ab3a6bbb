// Q6_K: 128 bytes of low nibbles, 64 bytes of high pairs, 16 int8 scales, f16 d at the end. A half of 128 weights has
// four sub-blocks j of 32: their nibbles share 64 bytes (j % 2 picks the 32, j / 2 the half of a byte), their pairs 32.
// w = (d * scale of 16 weights) * (code - 32).

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 256;
  const uint8_t* block = payload + row * blocks * 210;
  for (uint64_t b = 0; b < blocks; ++b, block += 210, out += 256) {
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
}

} // namespace

constinit const Codec kQ6KCodec = {
    .id = CodecId::kQ6_K,
    .name = "q6_k",
    .cmf_name = "",
    .gguf_name = "Q6_K",
    .cmf_code = -1,
    .gguf_code = 14,
    .block = 256,
    .block_bytes = 210,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
