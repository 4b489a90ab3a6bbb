// mxfp4: four-bit floats in blocks of 32 with a power of two as scale (OCP MX).
#include "codec/planes.glsl"

#include "codec/levels16.glsl"
#include "codec/mxfp4_values.glsl"

const float kUnit = 0.5;
float block_scale(uint e) { return e8m0(e); }

#include "codec/mxfp4_groups.glsl"

// In f32 the values themselves, so that negative zeros and subnormal scales are those of the reference.
void decode_group(uint base, uint row, uint g, out vec4 w[8]) {
  float scale = e8m0(w_u8(e_plane(base), row * kGroups + g));
  uint q[8];
  halves(w_u128(qs_plane(base), row * kGroups + g), q);
  for (uint j = 0; j < 8; ++j)
    w[j] = vec4(e2m1(q[j]), e2m1(q[j] >> 8), e2m1(q[j] >> 16), e2m1(q[j] >> 24)) * scale;
}
