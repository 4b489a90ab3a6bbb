// One layer's cache: for each position the keys of all heads, then their values; f32, f16 with two values a word, or 8 bits
// (CacheKind of formats/artifact/shader_abi.h). Places are counted in values, in words with 8 bits.

layout(constant_id = SPEC_HEADS) const uint kHeads = 1;
layout(constant_id = SPEC_KV_HEADS) const uint kKvHeads = 1;
layout(constant_id = SPEC_HEAD_DIM) const uint kHeadDim = 32;
layout(constant_id = SPEC_VALUE_DIM) const uint kValueDim = 32;
layout(constant_id = SPEC_RING) const uint kRing = 0;
layout(constant_id = SPEC_CACHE) const uint kCache = CACHE_F32;

// What a head's key and value take.
const uint kKeyPlaces = kCache == CACHE_Q8 ? (kHeadDim + 31) / 32 + (kHeadDim + 3) / 4 : kHeadDim;
const uint kValuePlaces = kCache == CACHE_Q8 ? (kValueDim + 31) / 32 + (kValueDim + 3) / 4 : kValueDim;
const uint kCacheRow = kKvHeads * (kKeyPlaces + kValuePlaces);

uint cache_row(uint position) { return (kRing != 0 ? position % kRing : position) * kCacheRow; }
uint key_at(uint row, uint kv_head) { return row + kv_head * kKeyPlaces; }
uint value_at(uint row, uint kv_head) { return row + kKvHeads * kKeyPlaces + kv_head * kValuePlaces; }

vec2 cached_pair(uint at) {
  return kCache == CACHE_F16 ? unpackHalf2x16(kvu32[at / 2]) : vec2(kv32[at], kv32[at + 1]);
}
// Beyond this the cache would hold no number.
const float kCacheMost = kCache == CACHE_F16 ? 65504.0 : 3.402823466e38;

void cache_pair(uint at, vec2 pair) {
  if (!(abs(pair.x) <= kCacheMost && abs(pair.y) <= kCacheMost))
    results[RESULT_OVERFLOW] = push[PUSH_LAYER];
  if (kCache == CACHE_F16) {
    kvu32[at / 2] = packHalf2x16(pair);
  } else {
    kv32[at] = pair.x;
    kv32[at + 1] = pair.y;
  }
}

// Values 8 c.. of a head of `dim` values that starts at `at`; zeros behind its end.
const bool kWholeChunks = (kHeadDim | kValueDim) % 8 == 0;

vec4 code_values(uint word) {
  int w = int(word);
  return vec4(bitfieldExtract(w, 0, 8), bitfieldExtract(w, 8, 8), bitfieldExtract(w, 16, 8), w >> 24);
}

void cached_chunk(uint at, uint c, uint dim, out vec4 low, out vec4 high) {
  low = high = vec4(0.0);
  if (kCache == CACHE_Q8) {
    if (8 * c >= dim)
      return;
    uint codes = at + (dim + 31) / 32 + 2 * c;
    float factor = kv32[at + c / 4];
    low = code_values(kvu32[codes]) * factor;
    if (8 * c + 4 < dim)
      high = code_values(kvu32[codes + 1]) * factor;
    return;
  }
  if (!kWholeChunks) {
    for (uint i = 0; i < 4; ++i)
      if (8 * c + 2 * i < dim) {
        vec2 pair = cached_pair(at + 8 * c + 2 * i);
        if (i < 2) {
          low[2 * i] = pair.x;
          low[2 * i + 1] = pair.y;
        } else {
          high[2 * i - 4] = pair.x;
          high[2 * i - 3] = pair.y;
        }
      }
    return;
  }
  if (8 * c >= dim)
    return;
  if (kCache == CACHE_F16) {
    uvec4 h = kvu128[at / 8 + c];
    low = vec4(unpackHalf2x16(h.x), unpackHalf2x16(h.y));
    high = vec4(unpackHalf2x16(h.z), unpackHalf2x16(h.w));
  } else {
    low = uintBitsToFloat(kvu128[at / 4 + 2 * c]);
    high = uintBitsToFloat(kvu128[at / 4 + 2 * c + 1]);
  }
}
