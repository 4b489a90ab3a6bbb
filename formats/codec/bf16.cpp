// bf16: plain little-endian numbers.

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_number(const uint8_t* number, float* out) {
  *out = bfloat_to_float(load_u16(number));
}

} // namespace

constinit const Codec kBF16Codec = plain_numbers<2, decode_number>(CodecId::kBF16, "bf16", "BF16", 2, 30);

} // namespace cortiq::formats
