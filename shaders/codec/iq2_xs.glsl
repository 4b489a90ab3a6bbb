// iq2_xs: blocks of 256 in sixteen groups, each with a scale of four bits; grid of 512.
#include "codec/planes.glsl"

const uint kGridWords = 256;
#include "codec/grids.glsl"

const uint kBlocks = kCols / 256;

uint d_plane(uint base) { return base + kGridWords / 4; }
uint sc_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 2); }
uint qs_plane(uint base) { return sc_plane(base) + plane_units(kRows * kBlocks * 8); }

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 2;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint block = row * kBlocks + g / 8, sub = g % 8, at = row * kGroups + g;
  for (uint l = 0; l < 4; ++l) {
    uint word = w_u16(qs_plane(base), 4 * at + l);
    uint near, far;
    iq2_magnitudes(grid_entry(word & 511), near, far);
    uint bits = even_signs(word >> 9);
    q[2 * l] = with_signs(near, bits);
    q[2 * l + 1] = with_signs(far, bits >> 4);
  }
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  uint block = row * kBlocks + g / 8, sub = g % 8, at = row * kGroups + g;
  uint both = w_u8(sc_plane(base), block * 8 + sub);
  float d = half_at(d_plane(base), block);
  s[0] = vec2(d * (0.5 + float(both & 15)) * 0.25, 0.0);
  s[1] = vec2(d * (0.5 + float(both >> 4)) * 0.25, 0.0);
}

#include "codec/float_levels.glsl"
