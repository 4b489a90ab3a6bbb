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
void cache_pair(uint at, vec2 pair) {
  if (kCacheHalf != 0) {
    kvu32[at / 2] = packHalf2x16(pair);
  } else {
    kv32[at] = pair.x;
    kv32[at + 1] = pair.y;
  }
}
