// q8_0: an f16 scale and 32 signed bytes a block of 32; the plane of codes is woven.
#include "codec/planes.glsl"

uint d_plane(uint base) { return base; }
uint q_plane(uint base) { return d_plane(base) + plane_units(kRows * kGroups * 2); }

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint first = g / 32 * 32;
  uint run = min(32u, kGroups - first);
  uint at = q_plane(base) + (row * kGroups + first) * 2 + g % 32;
  set_words(w128[at], w128[at + run], q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  s[0] = vec2(half_at(d_plane(base), row * kGroups + g), 0.0);
}

#include "codec/float_levels.glsl"
