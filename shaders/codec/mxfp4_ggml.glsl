// mxfp4_ggml: four-bit floats in blocks of 32 with a power of two as scale; levels and scale as ggml reads them.
#include "codec/planes.glsl"

#include "codec/levels16.glsl"

uint e_plane(uint base) { return base; }
uint qs_plane(uint base) { return e_plane(base) + plane_units(kRows * kGroups); }

#define CODEC_INTEGER
const int kZero = kFp4Zero;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  fp4_levels(w_u128(qs_plane(base), row * kGroups + g), q);
}

// 2^(e - 128)
float ggml_scale(uint e) { return uintBitsToFloat(e < 2 ? 0x00200000u << e : (e - 1) << 23); }

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  s[0] = vec2(ggml_scale(w_u8(e_plane(base), row * kGroups + g)), 0.0);
}

#define CODEC_FETCH
const uint kFetched = 1;
void group_fetch(uint base, uint row, uint g, out uvec4 codes[kFetched], out uint scales) {
  codes[0] = w_u128(qs_plane(base), row * kGroups + g);
  scales = w_u8(e_plane(base), row * kGroups + g);
}
void group_fetched(uvec4 codes[kFetched], uint scales, out uint q[8], out vec2 s[kScales]) {
  fp4_levels(codes[0], q);
  s[0] = vec2(ggml_scale(scales), 0.0);
}

#include "codec/float_levels.glsl"
