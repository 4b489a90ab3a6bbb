// fv5b, q8_k: an f32 scale and signed bytes a block of 256.
#include "codec/planes.glsl"

const uint kBlocks = kCols / 256;

uint d_plane(uint base) { return base; }
uint q_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 4); }

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint codes = 2 * (row * kGroups + g);
  set_words(w_u128(q_plane(base), codes), w_u128(q_plane(base), codes + 1), q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  s[0] = vec2(float_at(d_plane(base), row * kBlocks + g / 8), 0.0);
}

#include "codec/float_levels.glsl"
