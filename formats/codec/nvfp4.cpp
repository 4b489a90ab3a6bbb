// NVFP4: four E4M3 scales, each for 16 weights, then FP4 codes, 8 bytes for 16 weights (r and 8 + r share a byte).
// w = twice the code's value * (scale / 2).

#include "formats/codec/codec_rows.h"
#include "formats/codec/fp4.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 64;
  const uint8_t* block = payload + row * blocks * 36;
  for (uint64_t b = 0; b < blocks; ++b, block += 36, out += 64) {
    for (int s = 0; s < 4; ++s) {
      const float scale = 0.5f * nvfp4_scale(block[s]);
      const uint8_t* codes = block + 4 + 8 * s;
      for (int r = 0; r < 8; ++r) {
        out[16 * s + r] = static_cast<float>(kFP4Doubled[codes[r] & 15]) * scale;
        out[16 * s + 8 + r] = static_cast<float>(kFP4Doubled[codes[r] >> 4]) * scale;
      }
    }
  }
}

} // namespace

constinit const Codec kNVFP4Codec = {
    .id = CodecId::kNVFP4,
    .name = "nvfp4",
    .cmf_name = "",
    .gguf_name = "NVFP4",
    .cmf_code = -1,
    .gguf_code = 40,
    .block = 64,
    .block_bytes = 36,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kTable16,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
