// q6_k: blocks of 256 in sixteen groups, each with a signed scale; 32 weights have bytes of their own
// (formats/layout/plane_order.h).
#include "codec/planes.glsl"

const uint kBlocks = kCols / 256;

uint d_plane(uint base) { return base; }
uint scales_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 2); }
uint ql_plane(uint base) { return scales_plane(base) + plane_units(kRows * kBlocks * 16); }
uint qh_plane(uint base) { return ql_plane(base) + plane_units(kRows * kBlocks * 128); }

#define CODEC_INTEGER
const int kZero = 32;
const uint kScales = 2;
const bool kMinimum = false;
const float kUnit = 1.0;

#define CODEC_FETCH
const uint kFetched = 1, kFetchedWords = 3;
void group_fetch(uint base, uint row, uint g, out uvec4 codes[kFetched], out uint words[kFetchedWords]) {
  uint at = row * kGroups + g;
  uvec2 high = w64[qh_plane(base) * 2 + at];
  codes[0] = w_u128(ql_plane(base), at);
  words[0] = high.x;
  words[1] = high.y;
  words[2] = w_u16(scales_plane(base), at) | w_u16(d_plane(base), at / 8) << 16;
}
void group_fetched(uvec4 codes[kFetched], uint words[kFetchedWords], out uint q[8], out vec2 s[kScales]) {
  uint high[8];
  halves(codes[0], q);
  pairs(words[0], words[1], high);
  for (uint u = 0; u < 8; ++u)
    q[u] |= high[u] << 4;
  float d = unpackHalf2x16(words[2] >> 16).x;
  int both = int(words[2]);
  s[0] = vec2(d * float(bitfieldExtract(both, 0, 8)), 0.0);
  s[1] = vec2(d * float(bitfieldExtract(both, 8, 8)), 0.0);
}

#include "codec/fetched_levels.glsl"
#include "codec/float_levels.glsl"
