#include "formats/codec/half.h"

#include "formats/codec/codec.h"

namespace cortiq::formats {

float f16_to_f32(uint16_t bits) {
  return half_to_float(bits);
}
float bf16_to_f32(uint16_t bits) {
  return bfloat_to_float(bits);
}
uint16_t f32_to_f16(float value) {
  return float_to_half(value);
}

} // namespace cortiq::formats
