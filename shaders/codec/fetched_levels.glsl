// Levels and scales of a codec that says what memory has of a group (CODEC_FETCH).

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uvec4 codes[kFetched];
  uint words[kFetchedWords];
  vec2 s[kScales];
  group_fetch(base, row, g, codes, words);
  group_fetched(codes, words, q, s);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  uvec4 codes[kFetched];
  uint words[kFetchedWords];
  uint q[8];
  group_fetch(base, row, g, codes, words);
  group_fetched(codes, words, q, s);
}
