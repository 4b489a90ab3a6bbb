// i2_s: an f32 scale for the tensor and ternary codes of two bits.
#include "codec/planes.glsl"

uint scale_plane(uint base) { return base; }
uint qs_plane(uint base) { return scale_plane(base) + plane_units(64); }

#define CODEC_INTEGER
const int kZero = 1;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint codes = 2 * (row * kGroups + g);
  pairs(w_u32(qs_plane(base), codes), w_u32(qs_plane(base), codes + 1), q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  s[0] = vec2(float_at(scale_plane(base), 0), 0.0);
}

#include "codec/float_levels.glsl"
