// q4_k: blocks of 256 in eight groups, each with scale and minimum of six bits, which with its codes are bytes of its own
// (formats/layout/plane_order.h).
#include "codec/planes.glsl"

const uint kBlocks = kCols / 256;

uint d_plane(uint base) { return base; }
uint sc_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 4); }
uint m_plane(uint base) { return sc_plane(base) + plane_units(kRows * kBlocks * 8); }
uint qs_plane(uint base) { return m_plane(base) + plane_units(kRows * kBlocks * 4); }

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 1;
const bool kMinimum = true;
const float kUnit = 1.0;

#define CODEC_FETCH
const uint kFetched = 1, kFetchedWords = 2;
void group_fetch(uint base, uint row, uint g, out uvec4 codes[kFetched], out uint words[kFetchedWords]) {
  uint at = row * kGroups + g;
  codes[0] = w_u128(qs_plane(base), at);
  words[0] = w_u32(d_plane(base), at / 8);
  words[1] = w_u8(sc_plane(base), at) | (w_u32(m_plane(base), at / 8) >> 4 * (at % 8) & 15) << 8;
}
vec2 group_scale(uint words[kFetchedWords]) { return unpackHalf2x16(words[0]) * vec2(words[1] & 63, words[1] >> 6); }
void group_fetched(uvec4 codes[kFetched], uint words[kFetchedWords], out uint q[8], out vec2 s[kScales]) {
  halves(codes[0], q);
  s[0] = group_scale(words);
}

#include "codec/fetched_levels.glsl"
#include "codec/nibble_parts.glsl"
#include "codec/float_levels.glsl"
