// iq1_s: blocks of 256 in eight groups, each with a scale of three bits and a shift; grid of 2048.
#include "codec/planes.glsl"

const uint kGridWords = 1024;
#include "codec/grids.glsl"

const uint kBlocks = kCols / 256;

uint d_plane(uint base) { return base + kGridWords / 4; }
uint qh_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 2); }
uint qs_plane(uint base) { return qh_plane(base) + plane_units(kRows * kBlocks * 16); }

#define CODEC_INTEGER
const int kZero = 9;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 0.125;

// Eight levels of -1, 0 or 1, moved by an eighth: in eighths, 9 too high.
void iq1_levels(uint entry, bool down, out uint near, out uint far) {
  uint shift = down ? 0u : 0x02020202u;
  near = spread_pairs(entry & 255) * 8 + shift;
  far = spread_pairs(entry >> 8) * 8 + shift;
}

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint block = row * kBlocks + g / 8, sub = g % 8, at = row * kGroups + g;
  uint indices = w_u32(qs_plane(base), at), high = w_u16(qh_plane(base), at);
  for (uint l = 0; l < 4; ++l)
    iq1_levels(grid_entry((indices >> (8 * l) & 255) | (high >> (3 * l) & 7) << 8), high >> 15 != 0, q[2 * l], q[2 * l + 1]);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  uint block = row * kBlocks + g / 8, sub = g % 8, at = row * kGroups + g;
  uint high = w_u16(qh_plane(base), at);
  s[0] = vec2(half_at(d_plane(base), block) * float(2 * (high >> 12 & 7) + 1), 0.0);
}

#include "codec/float_levels.glsl"
