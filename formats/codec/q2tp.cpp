// q2tp: as q4tp (planes of codes, row parameters, 5-bit rung codes) with 2-bit codes, 8 bytes a tile of 32 weights,
// four neighbours a byte. Rung 0 is exactly 0, rung c the rung c - 1 of q4tp's ladder. w = (code - 1.5) * rung; in
// tensors that a Prism record lists as affine, which the payload does not show, w = (code - 1) * rung.

#include "formats/codec/codec_rows.h"
#include "formats/codec/ladder_planes.h"
#include "formats/codec/q4tp_ladder.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

constexpr uint64_t kTileBytes = 8;

/// `kTwiceZero` is twice the code whose weight would be 0.
template <int kTwiceZero>
void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  constexpr float kZero = 0.5f * kTwiceZero;
  const LadderRow<kTileBytes> planes(payload, rows, cols, row);
  const Q4TPLadder ladder(q4tp_exp2(planes.lo()), q4tp_exp2(planes.step()));
  const uint8_t* codes = planes.codes;
  for (uint64_t t = 0; t < planes.tiles; ++t, codes += kTileBytes, out += 32) {
    const uint32_t rung = planes.rung(t);
    const float scale = rung == 0 ? 0.0f : ladder.rung[rung - 1];
    for (int i = 0; i < 32; ++i)
      out[i] = (static_cast<float>(codes[i / 4] >> (i % 4 * 2) & 3) - kZero) * scale;
  }
}

} // namespace

constinit const Codec kQ2TPCodec =
    cmf_planes(CodecId::kQ2TP, "q2tp", 16, 32, DotForm::kAffineInt, ladder_payload_bytes<kTileBytes>, decode_row<3>);

constinit const Codec kQ2TPAffineCodec = cmf_planes(CodecId::kQ2TPAffine, "q2tp_affine", 16, 32, DotForm::kAffineInt,
                                                    ladder_payload_bytes<kTileBytes>, decode_row<2>);

} // namespace cortiq::formats
