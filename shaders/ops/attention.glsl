// Causal attention over the cache. A workgroup has one head of one token, or one share of its positions; grid: heads in x,
// shares in y, tokens in z. Teams of kTeam invocations take positions in turn, each with a running maximum of its own, and
// are joined at the end. Head dimensions are even.
//
// With kPrep it also does what rope_kv does, for a single token: rows are q, k and v as the matrices left them.

layout(constant_id = SPEC_SCALE) const float kScale = 1.0;
layout(constant_id = SPEC_WINDOW) const uint kWindow = 0;
layout(constant_id = SPEC_SOFTCAP) const float kSoftcap = 0.0;
layout(constant_id = SPEC_SINKS) const uint kSinks = 0;
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;
layout(constant_id = SPEC_QUANT_OUT) const uint kQuantOut = 0; // the result is in 8 bits; values a head are whole groups of 32
layout(constant_id = SPEC_PREP) const uint kPrep = 0;
layout(constant_id = SPEC_SHARES) const uint kShares = 1;

#include "common/activation.glsl"
#include "common/cache.glsl"
#include "common/group_sum.glsl"
#include "common/heads.glsl"
#include "common/order.glsl"
#include "common/q8.glsl"

const uint kTeam = 4;
const uint kTeams = kLocal / kTeam;
const uint kAhead = 4; // positions that a team takes at a time
const uint kKeyChunks = ((kHeadDim + 7) / 8 + kTeam - 1) / kTeam; // of 8 values, an invocation
const uint kValueChunks = ((kValueDim + 7) / 8 + kTeam - 1) / kTeam;
const float kNever = -1e30;

shared float result[kValueDim];
shared float own_key[kHeadDim];

vec4 query[2 * kKeyChunks];
vec4 sums[2 * kValueChunks];
float most;
float total;

// The score of a key whose chunks are at hand, known to the whole team.
float team_score(float part) {
  part += subgroupShuffleXor(part, 1);
  part += subgroupShuffleXor(part, 2);
  return kSoftcap > 0.0 ? kSoftcap * bounded_tanh(part / kSoftcap) : part;
}

void raise(float peak) {
  float fade = exp(most - peak);
  most = peak;
  total *= fade;
  for (uint c = 0; c < 2 * kValueChunks; ++c)
    sums[c] *= fade;
}

void visit(uint first, uint end, uint kv_head, uint lane) {
  float scores[kAhead];
  float peak = most;
  for (uint u = 0; u < kAhead; ++u) {
    uint position = first + u * kTeams;
    uint at = key_at(cache_row(min(position, end - 1)), kv_head);
    vec4 part = vec4(0.0);
    for (uint c = 0; c < kKeyChunks; ++c) {
      vec4 low, high;
      cached_chunk(at, lane + kTeam * c, kHeadDim, low, high);
      part = fma(query[2 * c], low, part);
      part = fma(query[2 * c + 1], high, part);
    }
    float score = team_score((part.x + part.z) + (part.y + part.w));
    scores[u] = position < end ? score : kNever;
    peak = max(peak, scores[u]);
  }
  raise(peak);
  for (uint u = 0; u < kAhead; ++u) {
    uint position = first + u * kTeams;
    float weight = position < end ? exp(scores[u] - peak) : 0.0;
    total += weight;
    uint at = value_at(cache_row(min(position, end - 1)), kv_head);
    for (uint c = 0; c < kValueChunks; ++c) {
      vec4 low, high;
      cached_chunk(at, lane + kTeam * c, kValueDim, low, high);
      sums[2 * c] = fma(vec4(weight), low, sums[2 * c]);
      sums[2 * c + 1] = fma(vec4(weight), high, sums[2 * c + 1]);
    }
  }
}

// The token's own position, whose key and value are not read from the cache: the first team takes it.
void visit_own(uint token, uint h, uint kv_head, bool first_share) {
  uint lane = local_index() % kTeam;
  uint row = cache_row(token_position(token));
  bool writer = first_share && h % (kHeads / kKvHeads) == 0;
  key_head(token, kv_head);
  cache_head(key_at(row, kv_head), kHeadDim, writer);
  float part = 0.0;
  for (uint c = 0; c < 2 * kKeyChunks; ++c)
    for (uint i = 0; i < 4; ++i) {
      uint d = 8 * (lane + kTeam * (c / 2)) + c % 2 * 4 + i;
      if (d < kHeadDim)
        part = fma(query[c][i], head[d], part);
    }
  float score = team_score(part);
  value_head(token, kv_head);
  cache_head(value_at(row, kv_head), kValueDim, writer);
  if (!first_share || local_index() >= kTeam)
    return;
  raise(max(most, score));
  float weight = exp(score - most);
  total += weight;
  for (uint c = 0; c < 2 * kValueChunks; ++c)
    for (uint i = 0; i < 4; ++i) {
      uint d = 8 * (lane + kTeam * (c / 2)) + c % 2 * 4 + i;
      if (d < kValueDim)
        sums[c][i] = fma(weight, head[d], sums[c][i]);
    }
}

// Joins the teams: `result` gets the sums, relative to the workgroup's maximum.
void join_teams() {
  raise(group_max(most));
  total = group_sum(local_index() % kTeam == 0 ? total : 0.0);
  for (uint o = kTeam; o < min(gl_SubgroupSize, kLocal); o <<= 1)
    for (uint c = 0; c < 2 * kValueChunks; ++c)
      sums[c] += subgroupShuffleXor(sums[c], o);
  for (uint i = local_index(); i < kValueDim; i += kLocal)
    result[i] = 0.0;
  for (uint s = 0; s < gl_NumSubgroups; ++s) {
    barrier();
    if (gl_SubgroupID == s && gl_SubgroupInvocationID < kTeam)
      for (uint c = 0; c < 2 * kValueChunks; ++c)
        for (uint i = 0; i < 4; ++i) {
          uint d = 8 * (gl_SubgroupInvocationID + kTeam * (c / 2)) + c % 2 * 4 + i;
          if (d < kValueDim)
            result[d] += sums[c][i];
        }
  }
  barrier();
}

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint h = gl_WorkGroupID.x;
  uint kv_head = h / (kHeads / kKvHeads);
  uint lane = local_index() % kTeam;
  bool first_share = gl_WorkGroupID.y == 0;
  uint end = token_position(token) + 1;
  uint begin = kWindow != 0 && end > kWindow ? end - kWindow : 0;
  if (kPrep != 0) {
    query_head(token, h);
    end -= 1;
  } else {
    load_head(input_row(token) + h * kHeadDim, kHeadDim);
  }
  float factor = kPrep != 0 ? kScale * query_warmth(token) : kScale;
  for (uint c = 0; c < 2 * kKeyChunks; ++c)
    for (uint i = 0; i < 4; ++i) {
      uint d = 8 * (lane + kTeam * (c / 2)) + c % 2 * 4 + i;
      query[c][i] = d < kHeadDim ? head[d] * factor : 0.0;
    }
  most = kNever;
  total = 0.0;
  for (uint c = 0; c < 2 * kValueChunks; ++c)
    sums[c] = vec4(0.0);
  uint share = (end - begin + kShares - 1) / kShares;
  begin += gl_WorkGroupID.y * share;
  end = min(end, begin + share);
  for (uint first = begin; first < end; first += kAhead * kTeams)
    visit(first + local_index() / kTeam, end, kv_head, lane);
  if (kPrep != 0)
    visit_own(token, h, kv_head, first_share);
  join_teams();
  if (kSinks != 0 && first_share) {
    float sink = v32[push[kPrep != 0 ? PUSH_SINKS : PUSH_VECTOR] + h];
    float peak = max(most, sink);
    float fade = exp(most - peak);
    total = total * fade + exp(sink - peak);
    most = peak;
    for (uint d = local_index(); d < kValueDim; d += kLocal)
      result[d] *= fade;
    barrier();
  }
  if (kShares > 1) {
    uint at = push[PUSH_SHARES] + ((token * kHeads + h) * kShares + gl_WorkGroupID.y) * (kValueDim + 2);
    for (uint d = local_index(); d < kValueDim; d += kLocal)
      a32[at + 2 + d] = result[d];
    if (local_index() == 0) {
      a32[at] = most;
      a32[at + 1] = total;
    }
    return;
  }
  if (kQuantOut == 0) {
    for (uint d = local_index(); d < kValueDim; d += kLocal)
      a32[out_row(token) + place_of(h * kValueDim + d, kOutOrder)] = result[d] / total;
    return;
  }
  for (uint g = local_index(); g < kValueDim / 32; g += kLocal) {
    float values[32];
    for (uint i = 0; i < 32; ++i)
      values[i] = result[32 * g + i] / total;
    q8_store(out_row(token), kHeads * kValueDim, h * (kValueDim / 32) + g, values);
  }
}
