// q8_0: an f16 scale and 32 signed bytes a block of 32; the plane of codes is woven.
#include "codec/planes.glsl"

uint d_plane(uint base) { return base; }
uint q_plane(uint base) { return d_plane(base) + plane_units(kRows * kGroups * 2); }

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

#define CODEC_FETCH
const uint kFetched = 2, kFetchedWords = 1;
void group_fetch(uint base, uint row, uint g, out uvec4 codes[kFetched], out uint words[kFetchedWords]) {
  uint first = g / 32 * 32;
  uint at = q_plane(base) + (row * kGroups + first) * 2 + g % 32;
  codes[0] = w128[at];
  codes[1] = w128[at + min(32u, kGroups - first)];
  words[0] = w_u16(d_plane(base), row * kGroups + g);
}
void group_fetched(uvec4 codes[kFetched], uint words[kFetchedWords], out uint q[8], out vec2 s[kScales]) {
  set_words(codes[0], codes[1], q);
  s[0] = vec2(unpackHalf2x16(words[0]).x, 0.0);
}

#include "codec/fetched_levels.glsl"
#include "codec/float_levels.glsl"
