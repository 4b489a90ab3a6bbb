// What memory has of a group of weights, or levels and scales where a codec does not say what that is (CODEC_FETCH): asked
// for first, decoded when it is needed.

#ifdef CODEC_FETCH
struct Fetched {
  uvec4 codes[kFetched];
  uint words[kFetchedWords];
};
Fetched fetch(uint base, uint row, uint g) {
  Fetched f;
  group_fetch(base, row, g, f.codes, f.words);
  return f;
}
void decode(Fetched f, out uint q[8], out vec2 s[kScales]) { group_fetched(f.codes, f.words, q, s); }
#else
struct Fetched {
  uint levels[8];
  vec2 scales[kScales];
};
Fetched fetch(uint base, uint row, uint g) {
  Fetched f;
  group_levels(base, row, g, f.levels);
  group_scales(base, row, g, f.scales);
  return f;
}
void decode(Fetched f, out uint q[8], out vec2 s[kScales]) {
  q = f.levels;
  s = f.scales;
}
#endif

// A group of activations in 8 bits, as q8.glsl has it.
struct Input {
  uvec4 near, far;
  float scale;
  uint both;
};
Input fetch_input(uint row, uint g) {
  return Input(au128[row / 4 + q8_codes(g, 0)], au128[row / 4 + q8_codes(g, 1)], a32[row + q8_padded(kCols) * 8 + g],
               au32[row + q8_padded(kCols) * 9 + g]);
}
