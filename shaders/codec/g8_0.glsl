// g8_0: ternary codes of two bits, a bf16 scale for eight of them.
#include "codec/planes.glsl"

uint d_plane(uint base) { return base; }
uint qs_plane(uint base) { return d_plane(base) + plane_units(kRows * kGroups * 8); }

#define CODEC_INTEGER
const int kZero = 1;
const uint kScales = 4;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint codes = 2 * (row * kGroups + g);
  pairs(w_u32(qs_plane(base), codes), w_u32(qs_plane(base), codes + 1), q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  for (uint i = 0; i < 4; ++i)
    s[i] = vec2(uintBitsToFloat(w_u16(d_plane(base), 4 * (row * kGroups + g) + i) << 16), 0.0);
}

#include "codec/float_levels.glsl"
