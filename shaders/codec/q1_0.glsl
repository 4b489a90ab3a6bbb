// q1_0, q1g: an f16 scale and signs a block of 128.
#include "codec/planes.glsl"

const uint kBlocks = kCols / 128;

uint d_plane(uint base) { return base; }
uint qs_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 2); }

#define CODEC_INTEGER
const int kZero = 1;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  for (uint u = 0; u < 8; ++u)
    q[u] = 0;
  add_bits(w_u32(qs_plane(base), row * kGroups + g), 1, q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  s[0] = vec2(half_at(d_plane(base), row * kBlocks + g / 4), 0.0);
}

#include "codec/float_levels.glsl"
