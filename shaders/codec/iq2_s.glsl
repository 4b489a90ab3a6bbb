// iq2_s: blocks of 256 in sixteen groups, each with a scale of four bits; grid of 1024.
#include "codec/planes.glsl"

const uint kGridWords = 512;
#include "codec/grids.glsl"

const uint kBlocks = kCols / 256;

uint d_plane(uint base) { return base + kGridWords / 4; }
uint sc_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 2); }
uint qh_plane(uint base) { return sc_plane(base) + plane_units(kRows * kBlocks * 8); }
uint qs_plane(uint base) { return qh_plane(base) + plane_units(kRows * kBlocks * 8); }
uint signs_plane(uint base) { return qs_plane(base) + plane_units(kRows * kBlocks * 32); }

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 2;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint block = row * kBlocks + g / 8, sub = g % 8, at = row * kGroups + g;
  uint indices = w_u32(qs_plane(base), at), signs = w_u32(signs_plane(base), at);
  uint high = w_u8(qh_plane(base), block * 8 + sub);
  for (uint l = 0; l < 4; ++l) {
    uint near, far;
    iq2_magnitudes(grid_entry((indices >> (8 * l) & 255) | (high >> (2 * l) & 3) << 8), near, far);
    q[2 * l] = with_signs(near, signs >> (8 * l));
    q[2 * l + 1] = with_signs(far, signs >> (8 * l + 4));
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
