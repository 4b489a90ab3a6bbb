// iq3_s: blocks of 256 in eight groups, of which two share a scale; grid of 512.
#include "codec/planes.glsl"

const uint kGridWords = 256;
#include "codec/grids.glsl"

const uint kBlocks = kCols / 256;

uint d_plane(uint base) { return base + kGridWords / 4; }
uint sc_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 2); }
uint qh_plane(uint base) { return sc_plane(base) + plane_units(kRows * kBlocks * 4); }
uint signs_plane(uint base) { return qh_plane(base) + plane_units(kRows * kBlocks * 8); }
uint qs_plane(uint base) { return signs_plane(base) + plane_units(kRows * kBlocks * 32); }

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint block = row * kBlocks + g / 8, sub = g % 8, at = row * kGroups + g;
  uint signs = w_u32(signs_plane(base), at), high = w_u8(qh_plane(base), block * 8 + sub);
  for (uint k = 0; k < 8; ++k) {
    uint index = (w_u32(qs_plane(base), 2 * at + k / 4) >> (8 * (k % 4)) & 255) | (high >> k & 1) << 8;
    q[k] = with_signs(spread_triples(grid_entry(index)) * 2 + 0x01010101u, signs >> (4 * k));
  }
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  uint block = row * kBlocks + g / 8, sub = g % 8, at = row * kGroups + g;
  uint sub_scale = w_u8(sc_plane(base), block * 4 + sub / 2) >> (4 * (sub % 2)) & 15;
  s[0] = vec2(half_at(d_plane(base), block) * float(1 + 2 * sub_scale), 0.0);
}

#include "codec/float_levels.glsl"
