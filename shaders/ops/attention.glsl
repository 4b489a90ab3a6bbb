// Causal attention over the cache. A workgroup has one head of one token and walks the positions that it sees kLocal at a
// time, with a running maximum; grid: heads in x, tokens in z. Head dimensions are even.

layout(constant_id = SPEC_SCALE) const float kScale = 1.0;
layout(constant_id = SPEC_WINDOW) const uint kWindow = 0;
layout(constant_id = SPEC_SOFTCAP) const float kSoftcap = 0.0;
layout(constant_id = SPEC_SINKS) const uint kSinks = 0;
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;

#include "common/activation.glsl"
#include "common/cache.glsl"
#include "common/group_sum.glsl"
#include "common/order.glsl"

const uint kValuePairs = kValueDim / 2;
const uint kParts = kLocal >= kValuePairs ? kLocal / kValuePairs : 1; // invocations a pair of values
const uint kOwn = (kValuePairs + kLocal - 1) / kLocal;                // pairs an invocation
const float kNever = -1e30;

shared vec2 query[kHeadDim / 2];
shared float weights[kLocal];
shared vec2 parts[kLocal];

float score(uint position, uint kv_head) {
  uint at = key_at(cache_row(position), kv_head);
  vec2 sum = vec2(0.0);
  for (uint d = 0; d < kHeadDim / 2; ++d)
    sum = fma(query[d], cached_pair(at + 2 * d), sum);
  float s = sum.x + sum.y;
  return kSoftcap > 0.0 ? kSoftcap * bounded_tanh(s / kSoftcap) : s;
}

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint head = gl_WorkGroupID.x;
  uint kv_head = head / (kHeads / kKvHeads);
  uint lane = local_index();
  uint end = token_position(token) + 1;
  uint begin = kWindow != 0 && end > kWindow ? end - kWindow : 0;
  for (uint d = lane; d < kHeadDim / 2; d += kLocal) {
    uint at = input_row(token) + head * kHeadDim + 2 * d;
    query[d] = vec2(a32[at], a32[at + 1]) * kScale;
  }
  barrier();
  float most = kNever;
  float total = 0.0;
  vec2 sums[kOwn];
  for (uint o = 0; o < kOwn; ++o)
    sums[o] = vec2(0.0);
  uint part = lane / kValuePairs;
  for (uint first = begin; first < end; first += kLocal) {
    uint position = first + lane;
    float s = position < end ? score(position, kv_head) : kNever;
    float peak = max(most, group_max(s));
    float w = position < end ? exp(s - peak) : 0.0;
    float fade = exp(most - peak);
    most = peak;
    total = total * fade + w;
    weights[lane] = w;
    barrier();
    uint count = min(kLocal, end - first);
    for (uint o = 0; o < kOwn; ++o) {
      uint pair = kOwn == 1 ? lane % kValuePairs : lane + o * kLocal;
      sums[o] *= fade;
      if (part < kParts && pair < kValuePairs)
        for (uint i = part; i < count; i += kParts)
          sums[o] = fma(vec2(weights[i]), cached_pair(value_at(cache_row(first + i), kv_head) + 2 * pair), sums[o]);
    }
    barrier();
  }
  total = group_sum(total);
  float fade = 1.0;
  if (kSinks != 0) {
    float sink = v32[push[PUSH_VECTOR] + head];
    float peak = max(most, sink);
    fade = exp(most - peak);
    total = total * fade + exp(sink - peak);
  }
  if (kParts > 1) { // what several invocations have of one pair
    parts[lane] = sums[0];
    barrier();
    if (lane < kValuePairs)
      for (uint i = 1; i < kParts; ++i)
        sums[0] += parts[lane + i * kValuePairs];
  }
  for (uint o = 0; o < kOwn; ++o) {
    uint pair = lane + o * kLocal;
    if (pair >= kValuePairs)
      return;
    vec2 out_pair = sums[o] * (fade / total);
    a32[out_row(token) + place_of(head * kValueDim + 2 * pair, kOutOrder)] = out_pair.x;
    a32[out_row(token) + place_of(head * kValueDim + 2 * pair + 1, kOutOrder)] = out_pair.y;
  }
}
