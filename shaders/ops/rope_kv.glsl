// Norms of heads, rotation, and what joins the cache. A workgroup has one head of one token; grid: heads of q, then of k,
// then of v in x, tokens in z. Queries are changed in place. Head dimensions are even.

layout(constant_id = SPEC_PAIRS) const uint kPairs = 0;
layout(constant_id = SPEC_NORM_FLAGS) const uint kNormFlags = 0;
layout(constant_id = SPEC_EPS) const float kEps = 1e-6;
layout(constant_id = SPEC_TEMPERATURE_LENGTH) const float kWarmLength = 0.0;
layout(constant_id = SPEC_TEMPERATURE_SCALE) const float kWarmScale = 0.0;

#include "common/cache.glsl"
#include "common/group_sum.glsl"

shared float head[kHeadDim + kValueDim];

void norm_head(uint dim, bool weighted, uint weight) {
  float squares = 0.0;
  for (uint i = local_index(); i < dim; i += kLocal)
    squares = fma(head[i], head[i], squares);
  float factor = 1.0 / sqrt(group_sum(squares) / float(dim) + kEps);
  for (uint i = local_index(); i < dim; i += kLocal)
    head[i] = weighted ? head[i] * factor * v32[weight + i] : head[i] * factor;
  barrier();
}

void rotate_head(uint token) {
  for (uint i = local_index(); i < kPairs; i += kLocal) {
    float c = uintBitsToFloat(step_words[push[PUSH_COSINES] + token * kPairs + i]);
    float s = uintBitsToFloat(step_words[push[PUSH_SINES] + token * kPairs + i]);
    float a = head[i], b = head[i + kPairs];
    head[i] = a * c - b * s;
    head[i + kPairs] = b * c + a * s;
  }
  barrier();
}

void turn_head(uint norm, uint weight, uint token) {
  bool normed = (kNormFlags & norm) != 0;
  bool last = (kNormFlags & NORM_AFTER_ROPE) != 0;
  if (normed && !last)
    norm_head(kHeadDim, true, weight);
  if (kPairs != 0)
    rotate_head(token);
  if (normed && last)
    norm_head(kHeadDim, true, weight);
}

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint h = gl_WorkGroupID.x;
  bool query = h < kHeads;
  bool key = !query && h < kHeads + kKvHeads;
  uint kv_head = (h - kHeads) % kKvHeads;
  uint dim = query || key ? kHeadDim : kValueDim;
  uint from = query ? input_row(token) + h * kHeadDim : (key ? aux_row(token) : third_row(token)) + kv_head * dim;
  for (uint i = local_index(); i < dim; i += kLocal)
    head[i] = a32[from + i];
  barrier();
  if (query) {
    turn_head(NORM_Q, push[PUSH_VECTOR], token);
    float warm = 1.0;
    if (kWarmLength > 0.0)
      warm = 1.0 + kWarmScale * log(1.0 + floor(float(token_position(token)) / kWarmLength));
    for (uint i = local_index(); i < dim; i += kLocal)
      a32[from + i] = head[i] * warm;
    return;
  }
  if (key)
    turn_head(NORM_K, push[PUSH_VECTOR2], token);
  else if ((kNormFlags & NORM_V) != 0)
    norm_head(kValueDim, false, 0);
  uint row = cache_row(token_position(token));
  uint to = key ? key_at(row, kv_head) : value_at(row, kv_head);
  for (uint i = 2 * local_index(); i < dim; i += 2 * kLocal)
    cache_pair(to + i, vec2(head[i], head[i + 1]));
}
