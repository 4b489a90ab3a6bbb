// iq4_xs: blocks of 256 in eight groups, each with a scale of six bits; sixteen levels.
#include "codec/planes.glsl"

#include "codec/iq4_levels.glsl"

const uint kBlocks = kCols / 256;

uint d_plane(uint base) { return base; }
uint sh_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 2); }
uint sl_plane(uint base) { return sh_plane(base) + plane_units(kRows * kBlocks * 2); }
uint qs_plane(uint base) { return sl_plane(base) + plane_units(kRows * kBlocks * 4); }

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

#define CODEC_FETCH
const uint kFetched = 1, kFetchedWords = 1;
void group_fetch(uint base, uint row, uint g, out uvec4 codes[kFetched], out uint words[kFetchedWords]) {
  uint block = row * kBlocks + g / 8, sub = g % 8;
  codes[0] = w_u128(qs_plane(base), row * kGroups + g);
  uint low = w_u32(sl_plane(base), block) >> (4 * sub) & 15;
  uint high = w_u16(sh_plane(base), block) >> (2 * sub) & 3;
  words[0] = w_u16(d_plane(base), block) | low << 16 | high << 20;
}
vec2 group_scale(uint words[kFetchedWords]) {
  return vec2(unpackHalf2x16(words[0]).x * float(int(words[0] >> 16) - 32), 0.0);
}
void group_fetched(uvec4 codes[kFetched], uint words[kFetchedWords], out uint q[8], out vec2 s[kScales]) {
  iq4_levels(codes[0], q);
  s[0] = group_scale(words);
}

#include "codec/fetched_levels.glsl"
#include "codec/float_levels.glsl"
