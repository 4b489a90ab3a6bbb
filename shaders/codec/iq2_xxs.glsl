// iq2_xxs: blocks of 256 in eight groups, each with a scale of four bits; grid of 256.
#include "codec/planes.glsl"

const uint kGridWords = 128;
#include "codec/grids.glsl"

const uint kBlocks = kCols / 256;

uint d_plane(uint base) { return base + kGridWords / 4; }
uint qs_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 2); }
uint signs_plane(uint base) { return qs_plane(base) + plane_units(kRows * kBlocks * 32); }

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint block = row * kBlocks + g / 8, sub = g % 8, at = row * kGroups + g;
  uint indices = w_u32(qs_plane(base), at), signs = w_u32(signs_plane(base), at);
  for (uint l = 0; l < 4; ++l) {
    uint near, far;
    iq2_magnitudes(grid_entry(indices >> (8 * l) & 255), near, far);
    uint bits = even_signs(signs >> (7 * l) & 127);
    q[2 * l] = with_signs(near, bits);
    q[2 * l + 1] = with_signs(far, bits >> 4);
  }
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  uint block = row * kBlocks + g / 8, sub = g % 8, at = row * kGroups + g;
  float d = half_at(d_plane(base), block);
  s[0] = vec2(d * (0.5 + float(w_u32(signs_plane(base), at) >> 28)) * 0.25, 0.0);
}

#include "codec/float_levels.glsl"
