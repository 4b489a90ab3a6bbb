// Groups of four-bit floats behind a plane of exponents, as integer levels. Before it: kFp4Zero, fp4_levels() (levels16), kUnit, the weight of a
// level, and block_scale(), what an exponent stands for.
uint e_plane(uint base) { return base; }
uint qs_plane(uint base) { return e_plane(base) + plane_units(kRows * kGroups); }

#define CODEC_INTEGER
const int kZero = kFp4Zero;
const uint kScales = 1;
const bool kMinimum = false;

#define CODEC_FETCH
const uint kFetched = 1, kFetchedWords = 1;
void group_fetch(uint base, uint row, uint g, out uvec4 codes[kFetched], out uint words[kFetchedWords]) {
  codes[0] = w_u128(qs_plane(base), row * kGroups + g);
  words[0] = w_u8(e_plane(base), row * kGroups + g);
}
vec2 group_scale(uint words[kFetchedWords]) { return vec2(block_scale(words[0]), 0.0); }
void group_fetched(uvec4 codes[kFetched], uint words[kFetchedWords], out uint q[8], out vec2 s[kScales]) {
  fp4_levels(codes[0], q);
  s[0] = group_scale(words);
}

#include "codec/fetched_levels.glsl"

// Magnitudes, less twice those of negative levels.
#define CODEC_PARTS
const uint kParts = 2;
const int kPartZero = 0;
void code_parts(uvec4 codes, out uvec4 parts[kParts]) {
  [[unroll]] for (uint u = 0; u < 4; ++u) {
    parts[0][u] = fp4_magnitudes(codes[u]);
    parts[1][u] = parts[0][u] & fp4_negative(codes[u]);
  }
}
