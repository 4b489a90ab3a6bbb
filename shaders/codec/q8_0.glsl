// q8_0: an f16 scale and 32 signed bytes a block of 32; the plane of codes is woven.
#include "codec/planes.glsl"

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 1;
const bool kMinimum = false;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint first = g / 32 * 32;
  uint run = min(32u, kGroups - first);
  uint codes = base + plane_units(kRows * kGroups * 2) + (row * kGroups + first) * 2 + g % 32;
  uvec4 low = w128[codes];
  uvec4 high = w128[codes + run];
  for (uint u = 0; u < 4; ++u) {
    q[u] = low[u];
    q[4 + u] = high[u];
  }
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  s[0] = vec2(half_at(base, row * kGroups + g), 0.0);
}

#include "codec/float_levels.glsl"
