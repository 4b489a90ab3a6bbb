// iq3_xxs: blocks of 256 in eight groups, each with a scale of four bits; grid of 256.
#include "codec/planes.glsl"

const uint kGridWords = 128;
#include "codec/grids.glsl"

const uint kBlocks = kCols / 256;

uint d_plane(uint base) { return base + kGridWords / 4; }
uint signs_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 2); }
uint qs_plane(uint base) { return signs_plane(base) + plane_units(kRows * kBlocks * 32); }

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

// Magnitudes 4, 12, … 52 and 62.
uint iq3_magnitudes(uint entry) {
  uint c = spread_triples(entry);
  return 0x04040404u + c * 8 + (c & c >> 1 & c >> 2 & 0x01010101u) * 2;
}

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint block = row * kBlocks + g / 8, sub = g % 8, at = row * kGroups + g;
  uint signs = w_u32(signs_plane(base), at);
  for (uint k = 0; k < 8; ++k) {
    uint index = w_u32(qs_plane(base), 2 * at + k / 4) >> (8 * (k % 4)) & 255;
    q[k] = with_signs(iq3_magnitudes(grid_entry(index)), even_signs(signs >> (7 * (k / 2)) & 127) >> (4 * (k % 2)));
  }
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  uint block = row * kBlocks + g / 8, sub = g % 8, at = row * kGroups + g;
  float d = half_at(d_plane(base), block);
  s[0] = vec2(d * (0.5 + float(w_u32(signs_plane(base), at) >> 28)) * 0.5, 0.0);
}

#include "codec/float_levels.glsl"
