// q2_k: blocks of 256 in sixteen groups, each with scale and minimum of four bits.
#include "codec/planes.glsl"

const uint kBlocks = kCols / 256;

uint d_plane(uint base) { return base; }
uint dmin_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 2); }
uint scales_plane(uint base) { return dmin_plane(base) + plane_units(kRows * kBlocks * 2); }
uint qs_plane(uint base) { return scales_plane(base) + plane_units(kRows * kBlocks * 16); }

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 2;
const bool kMinimum = true;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint codes = 2 * (row * kGroups + g);
  pairs(w_u32(qs_plane(base), codes), w_u32(qs_plane(base), codes + 1), q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  uint block = row * kBlocks + g / 8, sub = g % 8;
  float d = half_at(d_plane(base), block), dmin = half_at(dmin_plane(base), block);
  uint both = w_u16(scales_plane(base), block * 8 + sub);
  s[0] = vec2(d * float(both & 15), dmin * float((both >> 4) & 15));
  s[1] = vec2(d * float((both >> 8) & 15), dmin * float(both >> 12));
}

#include "codec/float_levels.glsl"
