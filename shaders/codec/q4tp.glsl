// q4tp: nibbles in blocks of 32, whose scales are rungs of a ladder a row.
#include "codec/ladder.glsl"

#define CODEC_INTEGER
const int kZero = 8;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  halves(w_u128(qs_plane(base), row * kGroups + g), q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  s[0] = vec2(rung(base, row, rung_code(base, row, g)), 0.0);
}

#include "codec/float_levels.glsl"
