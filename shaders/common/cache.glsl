// One layer's cache: for each position the keys of all heads, then their values; f32, or f16 with two values a word.

layout(constant_id = SPEC_HEADS) const uint kHeads = 1;
layout(constant_id = SPEC_KV_HEADS) const uint kKvHeads = 1;
layout(constant_id = SPEC_HEAD_DIM) const uint kHeadDim = 32;
layout(constant_id = SPEC_VALUE_DIM) const uint kValueDim = 32;
layout(constant_id = SPEC_RING) const uint kRing = 0;
layout(constant_id = SPEC_CACHE_HALF) const uint kCacheHalf = 0;

// Values of a position.
const uint kCacheRow = kKvHeads * (kHeadDim + kValueDim);

uint cache_row(uint position) { return (kRing != 0 ? position % kRing : position) * kCacheRow; }
uint key_at(uint row, uint kv_head) { return row + kv_head * kHeadDim; }
uint value_at(uint row, uint kv_head) { return row + kKvHeads * kHeadDim + kv_head * kValueDim; }

vec2 cached_pair(uint at) {
  return kCacheHalf != 0 ? unpackHalf2x16(kvu32[at / 2]) : vec2(kv32[at], kv32[at + 1]);
}
// Beyond this the cache would hold no number.
const float kCacheMost = kCacheHalf != 0 ? 65504.0 : 3.402823466e38;

void cache_pair(uint at, vec2 pair) {
  if (!(abs(pair.x) <= kCacheMost && abs(pair.y) <= kCacheMost))
    results[RESULT_OVERFLOW] = push[PUSH_LAYER];
  if (kCacheHalf != 0) {
    kvu32[at / 2] = packHalf2x16(pair);
  } else {
    kv32[at] = pair.x;
    kv32[at + 1] = pair.y;
  }
}

// Values 8 c.. of a head of `dim` values that starts at `at`; zeros behind its end.
const bool kWholeChunks = (kHeadDim | kValueDim) % 8 == 0;

void cached_chunk(uint at, uint c, uint dim, out vec4 low, out vec4 high) {
  low = high = vec4(0.0);
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
  if (kCacheHalf != 0) {
    uvec4 h = kvu128[at / 8 + c];
    low = vec4(unpackHalf2x16(h.x), unpackHalf2x16(h.y));
    high = vec4(unpackHalf2x16(h.z), unpackHalf2x16(h.w));
  } else {
    low = uintBitsToFloat(kvu128[at / 4 + 2 * c]);
    high = uintBitsToFloat(kvu128[at / 4 + 2 * c + 1]);
  }
}
