// q4_0, q4_block, q4_tiled: an f16 scale and 32 nibbles a block of 32.
#include "codec/planes.glsl"

uint d_plane(uint base) { return base; }
uint qs_plane(uint base) { return d_plane(base) + plane_units(kRows * kGroups * 2); }

#define CODEC_INTEGER
const int kZero = 8;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  halves(w_u128(qs_plane(base), row * kGroups + g), q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  s[0] = vec2(half_at(d_plane(base), row * kGroups + g), 0.0);
}

#define CODEC_FETCH
const uint kFetched = 1;
void group_fetch(uint base, uint row, uint g, out uvec4 codes[kFetched], out uint scales) {
  codes[0] = w_u128(qs_plane(base), row * kGroups + g);
  scales = w_u16(d_plane(base), row * kGroups + g);
}
void group_fetched(uvec4 codes[kFetched], uint scales, out uint q[8], out vec2 s[kScales]) {
  halves(codes[0], q);
  s[0] = vec2(unpackHalf2x16(scales).x, 0.0);
}

#include "codec/float_levels.glsl"
