// f32: plain little-endian numbers.

#include <bit>

#include "formats/codec/codec_rows.h"
#include "formats/codec/half.h"
#include "formats/codec/row_kinds.h"

namespace cortiq::formats {
namespace {

void decode_number(const uint8_t* number, float* out) {
  *out = std::bit_cast<float>(load_u32(number));
}

} // namespace

constinit const Codec kF32Codec = plain_numbers<4, decode_number>(CodecId::kF32, "f32", "F32", 0, 0);

} // namespace cortiq::formats
