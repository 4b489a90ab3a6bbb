// mxfp4: four-bit floats in blocks of 32 with a power of two as scale (OCP MX).
#include "codec/planes.glsl"

uint e_plane(uint base) { return base; }
uint qs_plane(uint base) { return e_plane(base) + plane_units(kRows * kGroups); }

#include "codec/levels16.glsl"
#include "codec/mxfp4_values.glsl"

#define CODEC_INTEGER
const int kZero = kFp4Zero;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 0.5;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  fp4_levels(w_u128(qs_plane(base), row * kGroups + g), q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  s[0] = vec2(e8m0(w_u8(e_plane(base), row * kGroups + g)), 0.0);
}

#define CODEC_FETCH
const uint kFetched = 1;
void group_fetch(uint base, uint row, uint g, out uvec4 codes[kFetched], out uint scales) {
  codes[0] = w_u128(qs_plane(base), row * kGroups + g);
  scales = w_u8(e_plane(base), row * kGroups + g);
}
void group_fetched(uvec4 codes[kFetched], uint scales, out uint q[8], out vec2 s[kScales]) {
  fp4_levels(codes[0], q);
  s[0] = vec2(e8m0(scales), 0.0);
}

// In f32 the values themselves, so that negative zeros and subnormal scales are those of the reference.
void decode_group(uint base, uint row, uint g, out vec4 w[8]) {
  float scale = e8m0(w_u8(e_plane(base), row * kGroups + g));
  uint q[8];
  halves(w_u128(qs_plane(base), row * kGroups + g), q);
  for (uint j = 0; j < 8; ++j)
    w[j] = vec4(e2m1(q[j]), e2m1(q[j] >> 8), e2m1(q[j] >> 16), e2m1(q[j] >> 24)) * scale;
}
