// f32: plain numbers.
#include "codec/planes.glsl"

void decode_group(uint base, uint row, uint g, out vec4 w[8]) {
  uint first = row * kCols + 32 * g;
  for (uint j = 0; j < 8; ++j)
    if (kCols % 4 == 0)
      w[j] = uintBitsToFloat(w_u128(base, first / 4 + j));
    else
      w[j] = vec4(float_at(base, first + 4 * j), float_at(base, first + 4 * j + 1), float_at(base, first + 4 * j + 2),
                  float_at(base, first + 4 * j + 3));
}
