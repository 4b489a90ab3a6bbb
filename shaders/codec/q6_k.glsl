// q6_k: blocks of 256 in sixteen groups, each with a signed scale.
#include "codec/planes.glsl"

const uint kBlocks = kCols / 256;

uint d_plane(uint base) { return base; }
uint scales_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 2); }
uint ql_plane(uint base) { return scales_plane(base) + plane_units(kRows * kBlocks * 16); }
uint qh_plane(uint base) { return ql_plane(base) + plane_units(kRows * kBlocks * 128); }

#define CODEC_INTEGER
const int kZero = 32;
const uint kScales = 2;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint block = row * kBlocks + g / 8, sub = g % 8;
  uint part = sub / 4, j = sub % 4;
  for (uint h = 0; h < 2; ++h) {
    uvec4 low = w_u128(ql_plane(base), block * 8 + 4 * part + j % 2 * 2 + h) >> (j / 2 * 4) & 0x0f0f0f0fu;
    uvec4 high = w_u128(qh_plane(base), block * 4 + 2 * part + h) >> (2 * j) & 0x03030303u;
    for (uint u = 0; u < 4; ++u)
      q[4 * h + u] = low[u] | high[u] << 4;
  }
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  uint block = row * kBlocks + g / 8, sub = g % 8;
  float d = half_at(d_plane(base), block);
  int both = int(w_u16(scales_plane(base), block * 8 + sub));
  s[0] = vec2(d * float(bitfieldExtract(both, 0, 8)), 0.0);
  s[1] = vec2(d * float(bitfieldExtract(both, 8, 8)), 0.0);
}

#include "codec/float_levels.glsl"
