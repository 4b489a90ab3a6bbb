// STQ1_0: a 4-bit slot for each of 64 groups of four weights, 64 sign bits, f16 d at the end. Slot and sign pick four
// levels at once (stq1_0_pattern.h); the weights of a group stand 16 apart. w = level * d.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"
#include "formats/codec/stq1_0_pattern.h"

namespace cortiq::formats {
namespace {

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t blocks = cols / 256;
  const uint8_t* block = payload + row * blocks * 42;
  for (uint64_t b = 0; b < blocks; ++b, block += 42, out += 256) {
    const float d = half_to_float(load_u16(block + 40));
    for (int g = 0; g < 64; ++g) {
      const int slot = block[g / 2] >> (g % 2 * 4) & 15;
      const int sign = block[32 + g / 8] >> (g % 8) & 1;
      const int pattern = kSTQ10Pattern[16 * sign + slot];
      for (int p = 0; p < 4; ++p)
        out[g / 16 * 64 + g % 16 + 16 * p] = static_cast<float>((pattern >> (2 * p) & 3) - 1) * d;
    }
  }
}

} // namespace

constinit const Codec kSTQ10Codec = {
    .id = CodecId::kSTQ1_0,
    .name = "stq1_0",
    .cmf_name = "",
    .gguf_name = "STQ1_0",
    .cmf_code = -1,
    .gguf_code = 42,
    .block = 256,
    .block_bytes = 42,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kCodebook,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row,
};

} // namespace cortiq::formats
