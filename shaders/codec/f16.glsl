// f16: plain numbers.
#include "codec/planes.glsl"

void decode_group(uint base, uint row, uint g, out vec4 w[8]) {
  uint first = row * kCols + 32 * g;
  if (kCols % 8 == 0) {
    for (uint j = 0; j < 4; ++j) {
      uvec4 h = w_u128(base, first / 8 + j);
      w[2 * j] = vec4(unpackHalf2x16(h.x), unpackHalf2x16(h.y));
      w[2 * j + 1] = vec4(unpackHalf2x16(h.z), unpackHalf2x16(h.w));
    }
    return;
  }
  for (uint j = 0; j < 8; ++j)
    for (uint c = 0; c < 4; ++c)
      w[j][c] = half_at(base, first + 4 * j + c);
}
