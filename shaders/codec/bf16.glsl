// bf16: plain numbers.
#include "codec/planes.glsl"

void decode_group(uint base, uint row, uint g, out vec4 w[8]) {
  uint first = row * kCols + 32 * g;
  if (kCols % 8 == 0) {
    for (uint j = 0; j < 4; ++j) {
      uvec4 h = w_u128(base, first / 8 + j);
      uvec4 low = h << 16;
      uvec4 high = h & 0xffff0000u;
      w[2 * j] = uintBitsToFloat(uvec4(low.x, high.x, low.y, high.y));
      w[2 * j + 1] = uintBitsToFloat(uvec4(low.z, high.z, low.w, high.w));
    }
    return;
  }
  for (uint j = 0; j < 8; ++j)
    for (uint c = 0; c < 4; ++c)
      w[j][c] = uintBitsToFloat(w_u16(base, first + 4 * j + c) << 16);
}
