// q3_k: blocks of 256 in sixteen groups, each with a scale of six bits.
#include "codec/planes.glsl"

const uint kBlocks = kCols / 256;

uint d_plane(uint base) { return base; }
uint scales_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 2); }
uint qh_plane(uint base) { return scales_plane(base) + plane_units(kRows * kBlocks * 12); }
uint qs_plane(uint base) { return qh_plane(base) + plane_units(kRows * kBlocks * 32); }

#define CODEC_INTEGER
const int kZero = 4;
const uint kScales = 2;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint codes = 2 * (row * kGroups + g);
  pairs(w_u32(qs_plane(base), codes), w_u32(qs_plane(base), codes + 1), q);
  add_bits(w_u32(qh_plane(base), row * kGroups + g), 2, q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  uint block = row * kBlocks + g / 8, sub = g % 8;
  float d = half_at(d_plane(base), block);
  uint four = sub / 2; // which four of the sixteen scales
  uint low = w_u32(scales_plane(base), block * 3 + four % 2) >> (4 * (four / 2)) & 0x0f0f0f0fu;
  uint high = w_u32(scales_plane(base), block * 3 + 2) >> (2 * four) & 0x03030303u;
  uint both = (low | high << 4) >> (16 * (sub % 2));
  s[0] = vec2(d * float(int(both & 63) - 32), 0.0);
  s[1] = vec2(d * float(int((both >> 8) & 63) - 32), 0.0);
}

#include "codec/float_levels.glsl"
