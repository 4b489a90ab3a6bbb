// Norms of heads, rotation, and what joins the cache. A workgroup has one head of one token; grid: heads of q, then of k,
// then of v in x, tokens in z. Queries are changed in place; with kStill the out row gets them as they were. Head
// dimensions are even.

layout(constant_id = SPEC_STILL) const uint kStill = 0;

#include "common/cache.glsl"
#include "common/group_sum.glsl"
#include "common/heads.glsl"

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint h = gl_WorkGroupID.x;
  uint kv_head = (h - kHeads) % kKvHeads;
  uint row = cache_row(token_position(token));
  if (h < kHeads) {
    for (uint i = local_index(); kStill != 0 && i < kHeadDim; i += kLocal)
      a32[out_row(token) + h * kHeadDim + i] = a32[input_row(token) + h * kHeadDim + i];
    query_head(token, h);
    float warmth = query_warmth(token);
    for (uint i = local_index(); i < kHeadDim; i += kLocal)
      a32[input_row(token) + h * kHeadDim + i] = head[i] * warmth;
  } else if (h < kHeads + kKvHeads) {
    key_head(token, kv_head);
    cache_head(key_at(row, kv_head), kHeadDim, true);
  } else {
    value_head(token, kv_head);
    cache_head(value_at(row, kv_head), kValueDim, true);
  }
}
