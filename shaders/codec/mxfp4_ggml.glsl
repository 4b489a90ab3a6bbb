// mxfp4_ggml: four-bit floats in blocks of 32 with a power of two as scale; levels and scale as ggml reads them.
#include "codec/planes.glsl"

#include "codec/levels16.glsl"

uint e_plane(uint base) { return base; }
uint qs_plane(uint base) { return e_plane(base) + plane_units(kRows * kGroups); }

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  halves(w_u128(qs_plane(base), row * kGroups + g), q);
  fp4_levels(q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  uint e = w_u8(e_plane(base), row * kGroups + g); // 2^(e - 128)
  s[0] = vec2(uintBitsToFloat(e < 2 ? 0x00200000u << e : (e - 1) << 23), 0.0);
}

#include "codec/float_levels.glsl"
