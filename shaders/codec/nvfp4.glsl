// nvfp4: four-bit floats, an eight-bit float as scale for sixteen of them.
#include "codec/planes.glsl"

#include "codec/levels16.glsl"

uint d_plane(uint base) { return base; }
uint qs_plane(uint base) { return d_plane(base) + plane_units(kRows * kGroups * 2); }

#define CODEC_INTEGER
const int kZero = kFp4Zero;
const uint kScales = 2;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint n[8];
  fp4_levels(w_u128(qs_plane(base), row * kGroups + g), n);
  set_words(uvec4(n[0], n[1], n[4], n[5]), uvec4(n[2], n[3], n[6], n[7]), q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  for (uint i = 0; i < 2; ++i) {
    uint e = w_u8(d_plane(base), 2 * (row * kGroups + g) + i);
    float scale = (e & 127) < 8 ? float(e & 127) * 0.001953125 : uintBitsToFloat(((e & 127) << 20) + (120u << 23));
    s[i] = vec2(e == 127 ? 0.0 : 0.5 * scale, 0.0);
  }
}

#include "codec/float_levels.glsl"
