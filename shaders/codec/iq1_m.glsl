// iq1_m: blocks of 256 in sixteen groups, each with a scale of three bits; shifts of eight weights; grid of 2048.
#include "codec/planes.glsl"

const uint kGridWords = 1024;
#include "codec/grids.glsl"

const uint kBlocks = kCols / 256;

uint sc_plane(uint base) { return base + kGridWords / 4; }
uint qh_plane(uint base) { return sc_plane(base) + plane_units(kRows * kBlocks * 8); }
uint qs_plane(uint base) { return qh_plane(base) + plane_units(kRows * kBlocks * 16); }

#define CODEC_INTEGER
const int kZero = 9;
const uint kScales = 2;
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
  for (uint l = 0; l < 4; ++l) {
    uint nibble = high >> (4 * l) & 15;
    iq1_levels(grid_entry((indices >> (8 * l) & 255) | (nibble & 7) << 8), nibble >> 3 != 0, q[2 * l], q[2 * l + 1]);
  }
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  uint block = row * kBlocks + g / 8, sub = g % 8, at = row * kGroups + g;
  uint a = w_u32(sc_plane(base), block * 2), b = w_u32(sc_plane(base), block * 2 + 1);
  // The tops of the four words are the nibbles of d.
  float d = unpackHalf2x16((a >> 12 & 15) | (a >> 24 & 0xf0) | (b >> 4 & 0xf00) | (b >> 16 & 0xf000)).x;
  uint word = (sub / 2 < 2 ? a : b) >> (16 * (sub / 2 % 2));
  s[0] = vec2(d * float(2 * (word >> (6 * (sub % 2)) & 7) + 1), 0.0);
  s[1] = vec2(d * float(2 * (word >> (6 * (sub % 2) + 3) & 7) + 1), 0.0);
}

#include "codec/float_levels.glsl"
