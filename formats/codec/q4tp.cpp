// q4tp: planes of nibbles (16 bytes a tile of 32, order as in q4_block), of row parameters (f16 lo, f16 step) and of
// 5-bit rung codes (one a tile, a row padded to whole bytes, lowest bits first). w = (nibble - 8) * rung, the rungs
// being 2^lo * 2^step * 2^step … (q4tp_ladder.h).

#include "formats/codec/codec_rows.h"
#include "formats/codec/ladder_planes.h"
#include "formats/codec/q4tp_ladder.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

constexpr uint64_t kTileBytes = 16;

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const LadderRow<kTileBytes> planes(payload, rows, cols, row);
  const Q4TPLadder ladder(q4tp_row_exp2(planes.lo()), q4tp_row_exp2(planes.step()));
  const uint8_t* nibbles = planes.codes;
  for (uint64_t t = 0; t < planes.tiles; ++t, nibbles += kTileBytes, out += 32) {
    const float scale = ladder.rung[planes.rung(t)];
    for (int k = 0; k < 16; ++k) {
      out[2 * k] = static_cast<float>((nibbles[k] & 15) - 8) * scale;
      out[2 * k + 1] = static_cast<float>((nibbles[k] >> 4) - 8) * scale;
    }
  }
}

} // namespace

constinit const Codec kQ4TPCodec =
    cmf_planes(CodecId::kQ4TP, "q4tp", 15, 32, DotForm::kAffineInt, ladder_payload_bytes<kTileBytes>, decode_row);

} // namespace cortiq::formats
