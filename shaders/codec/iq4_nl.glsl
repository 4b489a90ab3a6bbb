// iq4_nl: an f16 scale and 32 codes of sixteen levels a block of 32.
#include "codec/planes.glsl"

#include "codec/iq4_levels.glsl"

uint d_plane(uint base) { return base; }
uint qs_plane(uint base) { return d_plane(base) + plane_units(kRows * kGroups * 2); }

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

#define CODEC_FETCH
const uint kFetched = 1, kFetchedWords = 1;
void group_fetch(uint base, uint row, uint g, out uvec4 codes[kFetched], out uint words[kFetchedWords]) {
  codes[0] = w_u128(qs_plane(base), row * kGroups + g);
  words[0] = w_u16(d_plane(base), row * kGroups + g);
}
vec2 group_scale(uint words[kFetchedWords]) { return vec2(unpackHalf2x16(words[0]).x, 0.0); }
void group_fetched(uvec4 codes[kFetched], uint words[kFetchedWords], out uint q[8], out vec2 s[kScales]) {
  iq4_levels(codes[0], q);
  s[0] = group_scale(words);
}

#include "codec/fetched_levels.glsl"
#include "codec/float_levels.glsl"
