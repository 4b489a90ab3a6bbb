// Attention of heads that see windows of their own, or also keys and values of the weights (anchors), which queries without
// rotation score without cap. Else as attention. A workgroup has one head of one token; grid: heads in x, tokens in z.
// Input: queries; aux: queries without rotation. Slots of kValueChunks invocations take values in turn.

#include "common/attention.glsl"

layout(constant_id = SPEC_ANCHORS) const uint kAnchors = 0;
layout(constant_id = SPEC_WINDOWS) const uint kWindows = 0; // each KV head's window stands in a table

#include "common/activation.glsl"
#include "common/cache.glsl"
#include "common/group_sum.glsl"
#include "common/order.glsl"
#include "common/q8.glsl"

const uint kKeyChunks = (kHeadDim + 7) / 8; // of 8 values
const uint kValueChunks = (kValueDim + 7) / 8;
const uint kSlots = kLocal / kValueChunks;
const float kNever = -1e30;

shared float query[kHeadDim];
shared float weights[kLocal];
shared float parts[kSlots * kValueChunks * 8];

vec4 low_sums = vec4(0.0), high_sums = vec4(0.0);
float most = kNever, total = 0.0;

void load_query(uint from) {
  barrier();
  for (uint i = local_index(); i < kHeadDim; i += kLocal)
    query[i] = a32[from + i];
  barrier();
}

float key_score(uint key) {
  float sum = 0.0;
  for (uint c = 0; c < kKeyChunks; ++c) {
    vec4 low, high;
    cached_chunk(key, c, kHeadDim, low, high);
    for (uint i = 0; i < 4; ++i) {
      if (8 * c + i < kHeadDim)
        sum = fma(low[i], query[8 * c + i], sum);
      if (8 * c + 4 + i < kHeadDim)
        sum = fma(high[i], query[8 * c + 4 + i], sum);
    }
  }
  sum *= kScale;
  return kSoftcap > 0.0 ? kSoftcap * bounded_tanh(sum / kSoftcap) : sum;
}

float anchor_score(uint key) {
  float sum = 0.0;
  for (uint i = 0; i < kHeadDim; ++i)
    sum = fma(v32[key + i], query[i], sum);
  return sum * kScale;
}

void anchor_chunk(uint value, uint c, out vec4 low, out vec4 high) {
  low = high = vec4(0.0);
  for (uint i = 0; i < 8; ++i)
    if (8 * c + i < kValueDim) {
      float x = v32[value + 8 * c + i];
      if (i < 4)
        low[i] = x;
      else
        high[i - 4] = x;
    }
}

// Leaves the weights of at most kLocal scores, and makes what was summed before relative to the largest of all.
void weigh(float score, bool there) {
  float peak = max(most, group_max(there ? score : kNever));
  float fade = exp(most - peak), weight = there ? exp(score - peak) : 0.0;
  most = peak;
  low_sums *= fade;
  high_sums *= fade;
  total = total * fade + group_sum(weight);
  weights[local_index()] = weight;
  barrier();
}

void add(float weight, vec4 low, vec4 high) {
  low_sums = fma(vec4(weight), low, low_sums);
  high_sums = fma(vec4(weight), high, high_sums);
}

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint h = gl_WorkGroupID.x, kv_head = h / (kHeads / kKvHeads);
  uint lane = local_index(), slot = lane / kValueChunks, chunk = lane % kValueChunks;
  uint end = token_position(token) + 1;
  uint window = kWindows != 0 ? vu32[push[PUSH_WINDOWS] + kv_head] : kWindow;
  vec4 low, high;
  load_query(input_row(token) + h * kHeadDim);
  for (uint first = window != 0 && end > window ? end - window : 0; first < end; first += kLocal) {
    bool there = first + lane < end;
    weigh(there ? key_score(key_at(cache_row(first + lane), kv_head)) : kNever, there);
    for (uint i = slot; slot < kSlots && i < min(kLocal, end - first); i += kSlots) {
      cached_chunk(value_at(cache_row(first + i), kv_head), chunk, kValueDim, low, high);
      add(weights[i], low, high);
    }
    barrier();
  }
  if (kAnchors != 0)
    load_query(aux_row(token) + h * kHeadDim);
  for (uint first = 0; first < kAnchors; first += kLocal) {
    uint own = kv_head * kAnchors + first;
    bool there = first + lane < kAnchors;
    weigh(there ? anchor_score(push[PUSH_ANCHOR_KEYS] + (own + lane) * kHeadDim) : kNever, there);
    for (uint i = slot; slot < kSlots && i < min(kLocal, kAnchors - first); i += kSlots) {
      anchor_chunk(push[PUSH_ANCHOR_VALUES] + (own + i) * kValueDim, chunk, low, high);
      add(weights[i], low, high);
    }
    barrier();
  }
  if (slot < kSlots)
    for (uint i = 0; i < 4; ++i) {
      parts[lane * 8 + i] = low_sums[i];
      parts[lane * 8 + 4 + i] = high_sums[i];
    }
  barrier();
  float sink = kSinks != 0 ? v32[push[PUSH_VECTOR] + h] : kNever;
  float peak = max(most, sink), fade = exp(most - peak);
  float divisor = total * fade + exp(sink - peak);
  for (uint d = lane; d < kValueDim; d += kLocal) {
    float sum = parts[d];
    for (uint s = 1; s < kSlots; ++s)
      sum += parts[s * kValueChunks * 8 + d];
    sum = sum * fade / divisor;
    if (kQuantOut == 0)
      a32[out_row(token) + place_of(h * kValueDim + d, kOutOrder)] = sum;
    else
      parts[d] = sum;
  }
  if (kQuantOut != 0)
    Q8_STORE_SHARED(parts, kValueDim / 32, out_row(token), kHeads * kValueDim, h * (kValueDim / 32))
}
