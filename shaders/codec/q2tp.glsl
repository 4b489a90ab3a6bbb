// q2tp: codes of two bits in blocks of 32, levels -1.5, -0.5, 0.5, 1.5; scales are 0 or rungs of a ladder a row.
#include "codec/ladder.glsl"

#define CODEC_INTEGER
const int kZero = 3;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 0.5;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint codes = 2 * (row * kGroups + g);
  pairs(w_u32(qs_plane(base), codes), w_u32(qs_plane(base), codes + 1), q);
  for (uint u = 0; u < 8; ++u)
    q[u] <<= 1;
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  uint c = rung_code(base, row, g);
  s[0] = vec2(c == 0 ? 0.0 : rung(base, row, c - 1), 0.0);
}

#include "codec/float_levels.glsl"
