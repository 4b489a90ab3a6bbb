// Q2_0: f16 d, 2-bit codes, four neighbouring weights a byte, the first in the lowest bits; upstream's blocks have 64
// weights, those of PQ2_0 (in older files also under upstream's type id) 128. w = (code - 1) * d.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"

namespace cortiq::formats {
namespace {

template <int kBlock>
void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  constexpr int kBytes = 2 + kBlock / 4;
  const uint64_t blocks = cols / kBlock;
  const uint8_t* block = payload + row * blocks * kBytes;
  for (uint64_t b = 0; b < blocks; ++b, block += kBytes, out += kBlock) {
    const float d = half_to_float(load_u16(block));
    for (int i = 0; i < kBlock; ++i)
      out[i] = static_cast<float>((block[2 + i / 4] >> (i % 4 * 2) & 3) - 1) * d;
  }
}

} // namespace

constinit const Codec kQ20Codec = {
    .id = CodecId::kQ2_0,
    .name = "q2_0",
    .cmf_name = "",
    .gguf_name = "Q2_0",
    .cmf_code = -1,
    .gguf_code = 42,
    .block = 64,
    .block_bytes = 18,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row<64>,
};

constinit const Codec kQ20G128Codec = {
    .id = CodecId::kQ2_0_G128,
    .name = "q2_0_g128",
    .cmf_name = "",
    .gguf_name = "PQ2_0",
    .cmf_code = -1,
    .gguf_code = 142,
    .block = 128,
    .block_bytes = 34,
    .flat = false,
    .needs_matrix = false,
    .form = DotForm::kAffineInt,
    .payload_bytes = contiguous_payload_bytes,
    .decode_row = decode_row<128>,
};

} // namespace cortiq::formats
