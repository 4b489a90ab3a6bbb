// IQ1_M: 32 low bytes of grid indices, one for 8 weights, 16 bytes of nibbles with three high index bits and the sign
// of the shift, then four words of four 3-bit scales (one for 16 weights) whose top four bits make up the f16 d. w = d
// * (2 * scale + 1) * (level +- 1/8).

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/iq_decode.h"
#include "formats/codec/iq_grids.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_block(const uint8_t* block, float* out) {
  const float d = half_to_float(iq1_m_d(block + 48));
  for (int v = 0; v < 32; ++v) {
    const int high = block[32 + v / 2] >> (v % 2 * 4) & 15;
    const int index = block[v] | (high & 7) << 8;
    const int sub = load_u16(block + 48 + v / 8 * 2) >> (v % 8 / 2 * 3) & 7;
    decode_levels8(iq1_grid()[index], high >> 3 != 0, d * static_cast<float>(2 * sub + 1), out + 8 * v);
  }
}

} // namespace

constinit const Codec kIQ1MCodec =
    gguf_blocks<256, 56, decode_block>(CodecId::kIQ1_M, "iq1_m", "IQ1_M", 29, DotForm::kCodebook);

} // namespace cortiq::formats
