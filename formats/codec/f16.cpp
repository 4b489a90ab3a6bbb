// f16: plain little-endian numbers.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_number(const uint8_t* number, float* out) {
  *out = half_to_float(load_u16(number));
}

} // namespace

constinit const Codec kF16Codec = plain_numbers<2, decode_number>(CodecId::kF16, "f16", "F16", 1, 1);

} // namespace cortiq::formats
