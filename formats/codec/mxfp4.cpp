// mxfp4 as CMF stores it: a plane of FP4 codes (neighbouring weights share a byte, the first in the low half), then a
// plane of E8M0 scales, one for 32 weights. w = value * 2^(scale - 127); 255 is NaN, and code 8 is -0.

#include "formats/checked_math.h"
#include "formats/codec/codec_rows.h"
#include "formats/codec/fp4.h"
#include "formats/codec/half.h"
#include "formats/codec/payload_size.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

StatusOr<uint64_t> payload_bytes(const Codec& codec, uint64_t rows, uint64_t cols) {
  CORTIQ_RETURN_IF_ERROR(check_block_shape(codec, rows, cols));
  return size_or_overflow(codec, rows, cols, checked_mul(checked_mul(rows, cols / 32), 17));
}

void decode_row(const uint8_t* payload, uint64_t rows, uint64_t cols, uint64_t row, float* out) {
  const uint64_t groups = cols / 32;
  const uint8_t* codes = payload + row * groups * 16;
  const uint8_t* scales = payload + rows * groups * 16 + row * groups;
  for (uint64_t g = 0; g < groups; ++g, codes += 16, out += 32) {
    const float scale = e8m0_scale(scales[g]);
    for (int k = 0; k < 16; ++k) {
      out[2 * k] = kFP4Values[codes[k] & 15] * scale;
      out[2 * k + 1] = kFP4Values[codes[k] >> 4] * scale;
    }
  }
}

} // namespace

constinit const Codec kMXFP4Codec =
    cmf_planes(CodecId::kMXFP4, "mxfp4", 21, 32, DotForm::kTable16, payload_bytes, decode_row);

} // namespace cortiq::formats
