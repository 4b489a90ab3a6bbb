// iq4_xs: blocks of 256 in eight groups, each with a scale of six bits; sixteen levels.
#include "codec/planes.glsl"

#include "codec/levels16.glsl"

const uint kBlocks = kCols / 256;

uint d_plane(uint base) { return base; }
uint sh_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 2); }
uint sl_plane(uint base) { return sh_plane(base) + plane_units(kRows * kBlocks * 2); }
uint qs_plane(uint base) { return sl_plane(base) + plane_units(kRows * kBlocks * 4); }

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  halves(w_u128(qs_plane(base), row * kGroups + g), q);
  iq4_levels(q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  uint block = row * kBlocks + g / 8, sub = g % 8;
  uint low = w_u32(sl_plane(base), block) >> (4 * sub) & 15;
  uint high = w_u16(sh_plane(base), block) >> (2 * sub) & 3;
  s[0] = vec2(half_at(d_plane(base), block) * float(int(low | high << 4) - 32), 0.0);
}

#include "codec/float_levels.glsl"
