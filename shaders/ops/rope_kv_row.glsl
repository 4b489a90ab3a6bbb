// What rope_kv.glsl does for heads without norms, for many tokens: a workgroup has all heads of one, each invocation two pairs
// of a head at a time, or two values that are not rotated. Grid: tokens in z. kPairs is even.

#include "common/cache.glsl"
#include "common/group_sum.glsl"
#include "common/heads.glsl"

const uint kTurns = kPairs / 2, kItems = kTurns + kHeadDim / 2 - kPairs; // of a head

// What an item is of: values `at` and the one behind it, and those kPairs further if it is rotated.
uint place_of_item(uint item) { return item < kTurns ? 2 * item : 2 * (item + kTurns); }

void turn_item(uint token, uint from, uint item, out vec2 low, out vec2 high) {
  uint at = place_of_item(item);
  low = vec2(a32[from + at], a32[from + at + 1]);
  if (item >= kTurns)
    return;
  vec2 first = rotated(token, at, low.x, a32[from + at + kPairs]);
  vec2 second = rotated(token, at + 1, low.y, a32[from + at + 1 + kPairs]);
  low = vec2(first.x, second.x);
  high = vec2(first.y, second.y);
}

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z, row = cache_row(token_position(token));
  float warmth = query_warmth(token);
  for (uint i = local_index(); i < kHeads * kItems; i += kLocal) {
    uint from = input_row(token) + i / kItems * kHeadDim, to = from + place_of_item(i % kItems);
    vec2 low, high;
    turn_item(token, from, i % kItems, low, high);
    a32[to] = low.x * warmth;
    a32[to + 1] = low.y * warmth;
    if (i % kItems < kTurns) {
      a32[to + kPairs] = high.x * warmth;
      a32[to + 1 + kPairs] = high.y * warmth;
    }
  }
  if (kCache == CACHE_Q8) {
    for (uint h = 0; h < kKvHeads; ++h) {
      key_head(token, h);
      cache_head(key_at(row, h), kHeadDim, true);
      value_head(token, h);
      cache_head(value_at(row, h), kValueDim, true);
    }
    return;
  }
  for (uint i = local_index(); i < kKvHeads * kItems; i += kLocal) {
    uint to = key_at(row, i / kItems) + place_of_item(i % kItems);
    vec2 low, high;
    turn_item(token, aux_row(token) + i / kItems * kHeadDim, i % kItems, low, high);
    cache_pair(to, low);
    if (i % kItems < kTurns)
      cache_pair(to + kPairs, high);
  }
  for (uint i = local_index(); i < kKvHeads * (kValueDim / 2); i += kLocal) {
    uint h = i / (kValueDim / 2), d = i % (kValueDim / 2) * 2, from = third_row(token) + h * kValueDim + d;
    cache_pair(value_at(row, h) + d, vec2(a32[from], a32[from + 1]));
  }
}
