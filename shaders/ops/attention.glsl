// Causal attention over the cache. A workgroup has one head of one token, or one share of its positions; grid: heads in x,
// shares in y, tokens in z. Teams of kTeam invocations take positions in turn, each with a running maximum of its own, and
// are joined at the end. Head dimensions are even.
//
// With kPrep it also does what rope_kv does, for a single token: rows are q, k and v as the matrices left them; positions are
// asked for before that is done. With kJoin the workgroup that is the last of a head's shares joins them; without,
// attention_combine does.

#include "common/attention.glsl"

layout(constant_id = SPEC_PREP) const uint kPrep = 0;
layout(constant_id = SPEC_SHARES) const uint kShares = 1;
layout(constant_id = SPEC_JOIN) const uint kJoin = 0;
layout(constant_id = SPEC_AHEAD) const uint kAhead = 4; // positions that a team takes at a time

#include "common/activation.glsl"
#include "common/cache.glsl"
#include "common/group_sum.glsl"
#include "common/heads.glsl"
#include "common/order.glsl"
#include "common/q8.glsl"

// The arena as other workgroups of this dispatch leave it.
layout(set = 0, binding = 1) coherent buffer JointFloats { float joint32[]; };
layout(set = 0, binding = 1) coherent buffer JointWords { uint joint_words[]; };

// Few positions are on their way to a small team at a time, and many to a large one, whose sums are joined in fewer steps.
const uint kTeam = kPrep == 0 || kHeadDim < 64 ? 4 : kHeadDim < 128 ? 8 : 16;
const uint kTeams = kLocal / kTeam;
const uint kKeyChunks = ((kHeadDim + 7) / 8 + kTeam - 1) / kTeam; // of 8 values, an invocation
const uint kValueChunks = ((kValueDim + 7) / 8 + kTeam - 1) / kTeam;
const float kNever = -1e30;

shared vec4 own[(2 * kHeadDim + kValueDim + 3) / 4]; // query, then key and value of the token itself
const uint kOwnKey = kHeadDim, kOwnValue = 2 * kHeadDim;

vec4 query[2 * kKeyChunks];
vec4 sums[2 * kValueChunks];
float most;
float total;
uvec4 keys[kAhead * kKeyChunks * 2]; // chunks, as the cache has them
uvec4 values[kAhead * kValueChunks * 2];

void set_own(uint i, float value) { own[i / 4][i % 4] = value; }
float own_value(uint i) { return own[i / 4][i % 4]; }
// Values 4 j.. of chunk c of this invocation, of what starts at `from` and has `dim`.
vec4 own_part(uint from, uint lane, uint c, uint dim) {
  uint d = 8 * (lane + kTeam * (c / 2)) + c % 2 * 4;
  if (dim % 8 == 0)
    return d < dim ? own[(from + d) / 4] : vec4(0.0);
  vec4 part = vec4(0.0);
  for (uint i = 0; i < 4; ++i)
    if (d + i < dim)
      part[i] = own_value(from + d + i);
  return part;
}

void fetch(uint at, uint c, uint dim, out uvec4 near, out uvec4 far) {
  near = far = uvec4(0);
  if (kCache == CACHE_F16 && kWholeChunks) {
    if (8 * c < dim)
      near = kvu128[at / 8 + c];
    return;
  }
  vec4 low, high;
  cached_chunk(at, c, dim, low, high);
  near = floatBitsToUint(low);
  far = floatBitsToUint(high);
}
vec4 unpacked_near(uvec4 near) {
  return kCache == CACHE_F16 && kWholeChunks ? vec4(unpackHalf2x16(near.x), unpackHalf2x16(near.y))
                                             : uintBitsToFloat(near);
}
vec4 unpacked_far(uvec4 near, uvec4 far) {
  return kCache == CACHE_F16 && kWholeChunks ? vec4(unpackHalf2x16(near.z), unpackHalf2x16(near.w))
                                             : uintBitsToFloat(far);
}

void fetch_keys(uint first, uint end, uint kv_head, uint lane) {
  [[unroll]] for (uint u = 0; u < kAhead; ++u) {
    uint at = key_at(cache_row(min(first + u * kTeams, end - 1)), kv_head);
    [[unroll]] for (uint c = 0; c < kKeyChunks; ++c) {
      uint n = 2 * (u * kKeyChunks + c);
      fetch(at, lane + kTeam * c, kHeadDim, keys[n], keys[n + 1]);
    }
  }
}
void fetch_values(uint first, uint end, uint kv_head, uint lane) {
  [[unroll]] for (uint u = 0; u < kAhead; ++u) {
    uint at = value_at(cache_row(min(first + u * kTeams, end - 1)), kv_head);
    [[unroll]] for (uint c = 0; c < kValueChunks; ++c) {
      uint n = 2 * (u * kValueChunks + c);
      fetch(at, lane + kTeam * c, kValueDim, values[n], values[n + 1]);
    }
  }
}

shared float team_parts[kLocal];

// The score of a key whose chunks are at hand, known to the whole team.
float team_score(float part) {
  if (gl_SubgroupSize >= kTeam) {
    [[unroll]] for (uint i = 0; i < 4; ++i)
      if ((1u << i) < kTeam)
        part += subgroupShuffleXor(part, 1u << i);
  } else {
    barrier();
    team_parts[local_index()] = part;
    barrier();
    part = 0.0;
    for (uint i = 0; i < kTeam; ++i)
      part += team_parts[local_index() / kTeam * kTeam + i];
  }
  return kSoftcap > 0.0 ? kSoftcap * bounded_tanh(part / kSoftcap) : part;
}

void raise(float peak) {
  float fade = exp(most - peak);
  most = peak;
  total *= fade;
  [[unroll]] for (uint c = 0; c < 2 * kValueChunks; ++c)
    sums[c] *= fade;
}

// Positions whose keys were fetched, and with kPrep their values.
void visit(uint first, uint end, uint kv_head, uint lane) {
  float scores[kAhead];
  float peak = most;
  [[unroll]] for (uint u = 0; u < kAhead; ++u) {
    vec4 part = vec4(0.0);
    [[unroll]] for (uint c = 0; c < kKeyChunks; ++c) {
      uint n = 2 * (u * kKeyChunks + c);
      part = fma(query[2 * c], unpacked_near(keys[n]), part);
      part = fma(query[2 * c + 1], unpacked_far(keys[n], keys[n + 1]), part);
    }
    float score = team_score((part.x + part.z) + (part.y + part.w));
    scores[u] = first + u * kTeams < end ? score : kNever;
    peak = max(peak, scores[u]);
  }
  raise(peak);
  if (kPrep == 0)
    fetch_values(first, end, kv_head, lane);
  [[unroll]] for (uint u = 0; u < kAhead; ++u) {
    float weight = first + u * kTeams < end ? exp(scores[u] - peak) : 0.0;
    total += weight;
    [[unroll]] for (uint c = 0; c < kValueChunks; ++c) {
      uint n = 2 * (u * kValueChunks + c);
      sums[2 * c] = fma(vec4(weight), unpacked_near(values[n]), sums[2 * c]);
      sums[2 * c + 1] = fma(vec4(weight), unpacked_far(values[n], values[n + 1]), sums[2 * c + 1]);
    }
  }
}

// 1 / root of the mean square of what starts at `from`; a subgroup finds it for itself.
float own_factor(uint from, uint dim) {
  float squares = 0.0;
  for (uint i = gl_SubgroupInvocationID; i < dim; i += gl_SubgroupSize)
    squares = fma(own_value(from + i), own_value(from + i), squares);
  return 1.0 / sqrt(subgroup_sum(squares) / float(dim) + kEps);
}

const bool kNormsLast = (kNormFlags & NORM_AFTER_ROPE) != 0;
bool head_normed(uint k) { return (kNormFlags & (k == 0 ? NORM_Q : NORM_K)) != 0; }
float norm_weight(uint k, uint i) { return v32[push[k == 0 ? PUSH_VECTOR : PUSH_VECTOR2] + i]; }

// Query, key and value of the token, as they take part, in `own`. An invocation has a rotated pair, or a value that is not
// rotated, of query or key.
const uint kTurns = kHeadDim - kPairs;
const uint kTurnRounds = (2 * kTurns + kLocal - 1) / kLocal;
void prepare_heads(uint token, uint h, uint kv_head) {
  uint starts[2] = uint[2](input_row(token) + h * kHeadDim, aux_row(token) + kv_head * kHeadDim);
  float a[kTurnRounds], b[kTurnRounds], cosine[kTurnRounds], sine[kTurnRounds];
  [[unroll]] for (uint n = 0; n < kTurnRounds; ++n) {
    uint i = min(n * kLocal + local_index(), 2 * kTurns - 1), j = i % kTurns;
    uint start = i < kTurns ? starts[0] : starts[1];
    a[n] = a32[start + (j < kPairs ? j : j + kPairs)];
    b[n] = cosine[n] = sine[n] = 0.0;
    if (j < kPairs) {
      b[n] = a32[start + j + kPairs];
      cosine[n] = uintBitsToFloat(step_words[push[PUSH_COSINES] + token * kPairs + j]);
      sine[n] = uintBitsToFloat(step_words[push[PUSH_SINES] + token * kPairs + j]);
    }
  }
  for (uint i = local_index(); i < kValueDim; i += kLocal)
    set_own(kOwnValue + i, a32[third_row(token) + kv_head * kValueDim + i]);
  float factors[2] = float[2](1.0, 1.0);
  if (!kNormsLast && (head_normed(0) || head_normed(1))) {
    [[unroll]] for (uint n = 0; n < kTurnRounds; ++n) {
      uint i = n * kLocal + local_index(), j = i % kTurns, from = i < kTurns ? 0 : kOwnKey;
      if (i < 2 * kTurns) {
        set_own(from + (j < kPairs ? j : j + kPairs), a[n]);
        if (j < kPairs)
          set_own(from + j + kPairs, b[n]);
      }
    }
    barrier();
    factors[0] = head_normed(0) ? own_factor(0, kHeadDim) : 1.0;
    factors[1] = head_normed(1) ? own_factor(kOwnKey, kHeadDim) : 1.0;
    barrier();
  }
  [[unroll]] for (uint n = 0; n < kTurnRounds; ++n) {
    uint i = n * kLocal + local_index(), j = i % kTurns, k = i < kTurns ? 0 : 1;
    uint at = j < kPairs ? j : j + kPairs;
    if (i >= 2 * kTurns)
      continue;
    if (!kNormsLast && head_normed(k)) {
      a[n] = a[n] * factors[k] * norm_weight(k, at);
      if (j < kPairs)
        b[n] = b[n] * factors[k] * norm_weight(k, at + kPairs);
    }
    set_own(k * kOwnKey + at, j < kPairs ? a[n] * cosine[n] - b[n] * sine[n] : a[n]);
    if (j < kPairs)
      set_own(k * kOwnKey + at + kPairs, b[n] * cosine[n] + a[n] * sine[n]);
  }
  barrier();
  if (!kNormsLast && (kNormFlags & NORM_V) == 0)
    return;
  factors[0] = kNormsLast && head_normed(0) ? own_factor(0, kHeadDim) : 1.0;
  factors[1] = kNormsLast && head_normed(1) ? own_factor(kOwnKey, kHeadDim) : 1.0;
  float of_value = (kNormFlags & NORM_V) != 0 ? own_factor(kOwnValue, kValueDim) : 1.0;
  barrier();
  for (uint i = local_index(); kNormsLast && i < 2 * kHeadDim; i += kLocal) {
    uint k = i / kHeadDim;
    if (head_normed(k))
      set_own(i, own_value(i) * factors[k] * norm_weight(k, i % kHeadDim));
  }
  for (uint i = local_index(); (kNormFlags & NORM_V) != 0 && i < kValueDim; i += kLocal)
    set_own(kOwnValue + i, own_value(kOwnValue + i) * of_value);
  barrier();
}

// The token's own position, whose key and value are not read from the cache: the first team of the first share takes it.
void visit_own(uint lane) {
  float part = 0.0;
  [[unroll]] for (uint c = 0; c < 2 * kKeyChunks; ++c)
    part += dot(query[c], own_part(kOwnKey, lane, c, kHeadDim));
  float score = team_score(part);
  if (gl_WorkGroupID.y != 0 || local_index() >= kTeam)
    return;
  raise(max(most, score));
  float weight = exp(score - most);
  total += weight;
  [[unroll]] for (uint c = 0; c < 2 * kValueChunks; ++c)
    sums[c] = fma(vec4(weight), own_part(kOwnValue, lane, c, kValueDim), sums[c]);
}

// What joins the cache; the query heads that share a key head have one writer.
void write_own(uint token, uint kv_head) {
  uint row = cache_row(token_position(token));
  for (uint i = 2 * local_index(); i < kHeadDim; i += 2 * kLocal)
    cache_pair(key_at(row, kv_head) + i, vec2(own_value(kOwnKey + i), own_value(kOwnKey + i + 1)));
  for (uint i = 2 * local_index(); i < kValueDim; i += 2 * kLocal)
    cache_pair(value_at(row, kv_head) + i, vec2(own_value(kOwnValue + i), own_value(kOwnValue + i + 1)));
}

// A cache in 8 bits: what it gives back takes part.
void round_own(uint from, uint to, uint dim, bool joins) {
  for (uint i = local_index(); i < dim; i += kLocal)
    head[i] = own_value(from + i);
  barrier();
  cache_head(to, dim, joins);
  for (uint i = local_index(); i < dim; i += kLocal)
    set_own(from + i, head[i]);
  barrier();
}

// ---- Joining ----

// Sums of a subgroup's teams: a step halves what an invocation holds, as long as that can be halved.
const uint kVectors = 2 * kValueChunks;
const uint kHeld1 = kVectors % 2 == 0 ? kVectors / 2 : kVectors;
const uint kHeld2 = kVectors % 4 == 0 ? kVectors / 4 : kHeld1;
const uint kHeld3 = kVectors % 8 == 0 ? kVectors / 8 : kHeld2;

void halve(uint held, uint left, uint o, inout uint first) {
  bool upper = (gl_SubgroupInvocationID & o) != 0;
  if (left == held) {
    [[unroll]] for (uint c = 0; c < kVectors; ++c)
      if (c < held)
        sums[c] += subgroupShuffleXor(sums[c], o);
    return;
  }
  [[unroll]] for (uint c = 0; c < kVectors / 2; ++c)
    if (c < left) {
      vec4 near = sums[c], far = sums[(c + left) % kVectors];
      sums[c] = (upper ? far : near) + subgroupShuffleXor(upper ? near : far, o);
    }
  first += upper ? left : 0;
}

// Rows of sums that fit shared memory; subgroups beyond that take turns.
const uint kJoinFit = 2048 / (4 * kTeam * kVectors), kJoinNeed = kLocal / 32;
const uint kJoinLess = kJoinFit < kJoinNeed ? kJoinFit : kJoinNeed;
const uint kJoinRows = kJoinLess > 0 ? kJoinLess : 1;
shared vec4 joined_sums[kJoinRows * kTeam * kVectors];
shared float joined_most[kLocal / kTeam];
shared float joined_total[kLocal / kTeam];

// Invocations whose sums are one row: a subgroup, or a team that is larger.
uint row_size() { return max(min(gl_SubgroupSize, kLocal), kTeam); }
uint rows_joined() { return kLocal / row_size(); }

void join_subgroup() {
  uint size = row_size(), lane = local_index() % kTeam, own_row = local_index() / size;
  float peak = most;
  [[unroll]] for (uint i = 2; i < 7; ++i)
    if (kTeam <= (1u << i) && (1u << i) < size)
      peak = max(peak, subgroupShuffleXor(peak, 1u << i));
  if (rows_joined() > kJoinRows)
    peak = group_max(peak);
  raise(peak);
  uint first = 0, held = kVectors;
  [[unroll]] for (uint i = 2; i < 7; ++i)
    if (kTeam <= (1u << i) && (1u << i) < size)
      total += subgroupShuffleXor(total, 1u << i);
  if (size > kTeam) {
    halve(kVectors, kHeld1, kTeam, first);
    held = kHeld1;
  }
  if (size > 2 * kTeam) {
    halve(kHeld1, kHeld2, 2 * kTeam, first);
    held = kHeld2;
  }
  if (size > 4 * kTeam) {
    halve(kHeld2, kHeld3, 4 * kTeam, first);
    held = kHeld3;
  }
  if (size > 8 * kTeam)
    halve(kHeld3, kHeld3, 8 * kTeam, first);
  if (local_index() % size == 0) {
    joined_most[own_row] = most;
    joined_total[own_row] = total;
  }
  for (uint turn = 0; turn * kJoinRows < rows_joined(); ++turn) {
    if (turn != 0)
      barrier();
    if (own_row / kJoinRows == turn)
      [[unroll]] for (uint c = 0; c < kVectors; ++c)
        if (c < held) {
          uint v = first + c, at = (own_row % kJoinRows) * kTeam * kVectors + (lane + kTeam * (v / 2)) * 2 + v % 2;
          joined_sums[at] = turn == 0 ? sums[c] : joined_sums[at] + sums[c];
        }
  }
  barrier();
}

// Behind that: values 4 v.. of the workgroup's sums, relative to `most`; and `most` and `total` of the workgroup.
vec4 joined(uint v) {
  vec4 sum = vec4(0.0);
  most = joined_most[0];
  total = 0.0;
  if (rows_joined() > kJoinRows) { // all have one maximum
    for (uint s = 0; s < rows_joined(); ++s)
      total += joined_total[s];
    [[unroll]] for (uint s = 0; s < kJoinRows; ++s)
      sum += joined_sums[s * kTeam * kVectors + v];
    return sum;
  }
  [[unroll]] for (uint s = 1; s < kJoinRows; ++s)
    if (s < rows_joined())
      most = max(most, joined_most[s]);
  [[unroll]] for (uint s = 0; s < kJoinRows; ++s)
    if (s < rows_joined()) {
      float fade = exp(joined_most[s] - most);
      total = fma(joined_total[s], fade, total);
      sum = fma(vec4(fade), joined_sums[s * kTeam * kVectors + v], sum);
    }
  return sum;
}

shared uint is_last;

// The shares of a head, by the workgroup that is the last to leave one.
vec4 joined_shares(uint first, uint v) {
  const uint each = kValueDim + 2;
  vec4 parts[kShares];
  float peaks[kShares], totals[kShares];
  [[unroll]] for (uint s = 0; s < kShares; ++s) {
    peaks[s] = joint32[first + s * each];
    totals[s] = joint32[first + s * each + 1];
    uint at = first + s * each + 2 + 4 * v;
    parts[s] = vec4(joint32[at], joint32[at + 1], joint32[at + 2], joint32[at + 3]);
  }
  most = peaks[0];
  [[unroll]] for (uint s = 1; s < kShares; ++s)
    most = max(most, peaks[s]);
  total = 0.0;
  vec4 sum = vec4(0.0);
  [[unroll]] for (uint s = 0; s < kShares; ++s) {
    float fade = exp(peaks[s] - most);
    total = fma(totals[s], fade, total);
    sum = fma(vec4(fade), parts[s], sum);
  }
  return sum;
}

// Values 4 v.. of head h. A workgroup's invocations come here together; `there` says whether there are such values.
void store_result(uint token, uint h, uint v, vec4 y, bool there) {
  if (kQuantOut == 0) {
    for (uint i = 0; i < 4; ++i)
      if (there && 4 * v + i < kValueDim)
        a32[out_row(token) + place_of(h * kValueDim + 4 * v + i, kOutOrder)] = y[i];
    return;
  }
  uint row = out_row(token), group = h * (kValueDim / 32);
  if (gl_SubgroupSize >= 8) {
    q8_store_eighth(row, kHeads * kValueDim, group + v / 8, v % 8, y, there);
    return;
  }
  barrier();
  if (there)
    joined_sums[v] = y;
  barrier();
  if (there && v % 8 == 0) {
    float values[32];
    for (uint i = 0; i < 32; ++i)
      values[i] = joined_sums[v + i / 4][i % 4];
    q8_store(row, kHeads * kValueDim, group + v / 8, values);
  }
}

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint h = gl_WorkGroupID.x;
  uint kv_head = h / (kHeads / kKvHeads);
  uint lane = local_index() % kTeam;
  bool writer = gl_WorkGroupID.y == 0 && h % (kHeads / kKvHeads) == 0;
  uint end = token_position(token) + 1;
  uint begin = kWindow != 0 && end > kWindow ? end - kWindow : 0;
  if (kPrep != 0)
    end -= 1;
  uint share = (end - begin + kShares - 1) / kShares;
  begin += gl_WorkGroupID.y * share;
  end = min(end, begin + share);
  uint mine = begin + local_index() / kTeam;
  if (begin < end) {
    fetch_keys(mine, end, kv_head, lane);
    if (kPrep != 0)
      fetch_values(mine, end, kv_head, lane);
  }
  if (kPrep != 0) {
    prepare_heads(token, h, kv_head);
    if (kCache == CACHE_Q8) {
      uint row = cache_row(token_position(token));
      round_own(kOwnKey, key_at(row, kv_head), kHeadDim, writer);
      round_own(kOwnValue, value_at(row, kv_head), kValueDim, writer);
    }
  } else {
    for (uint i = local_index(); i < kHeadDim; i += kLocal)
      set_own(i, a32[input_row(token) + h * kHeadDim + i]);
    barrier();
  }
  float factor = kPrep != 0 ? kScale * query_warmth(token) : kScale;
  [[unroll]] for (uint c = 0; c < 2 * kKeyChunks; ++c)
    query[c] = own_part(0, lane, c, kHeadDim) * factor;
  most = kNever;
  total = 0.0;
  [[unroll]] for (uint c = 0; c < 2 * kValueChunks; ++c)
    sums[c] = vec4(0.0);
  while (begin < end) {
    visit(mine, end, kv_head, lane);
    begin += kAhead * kTeams;
    mine += kAhead * kTeams;
    if (begin < end) {
      fetch_keys(mine, end, kv_head, lane);
      if (kPrep != 0)
        fetch_values(mine, end, kv_head, lane);
    }
  }
  if (kPrep != 0) {
    visit_own(lane);
    if (kCache != CACHE_Q8 && writer)
      write_own(token, kv_head);
  }
  join_subgroup();
  const uint kResults = (kValueDim + 3) / 4;
  for (uint base = 0; base < kResults; base += kLocal) {
    bool there = base + local_index() < kResults;
    uint v = min(base + local_index(), kResults - 1);
    vec4 y = joined(v);
    if (kSinks != 0 && gl_WorkGroupID.y == 0) {
      float sink = v32[push[kPrep != 0 ? PUSH_SINKS : PUSH_VECTOR] + h];
      float peak = max(most, sink);
      float fade = exp(most - peak);
      total = total * fade + exp(sink - peak);
      most = peak;
      y *= fade;
    }
    if (kShares == 1) {
      store_result(token, h, v, y / total, there);
      continue;
    }
    uint at = push[PUSH_SHARES] + ((token * kHeads + h) * kShares + gl_WorkGroupID.y) * (kValueDim + 2);
    for (uint i = 0; i < 4; ++i)
      if (there && 4 * v + i < kValueDim)
        joint32[at + 2 + 4 * v + i] = y[i];
    if (base + local_index() == 0) {
      joint32[at] = most;
      joint32[at + 1] = total;
    }
  }
  if (kJoin == 0)
    return;
  memoryBarrierBuffer();
  barrier();
  if (local_index() == 0) {
    is_last = atomicAdd(joint_words[push[PUSH_COUNTERS] + h], 1) + 1 == kShares ? 1 : 0;
    if (is_last != 0)
      joint_words[push[PUSH_COUNTERS] + h] = 0;
  }
  barrier();
  if (is_last == 0)
    return;
  memoryBarrierBuffer();
  for (uint base = 0; base < kResults; base += kLocal) {
    uint v = min(base + local_index(), kResults - 1);
    vec4 y = joined_shares(push[PUSH_SHARES] + (token * kHeads + h) * kShares * (kValueDim + 2), v);
    store_result(token, h, v, y / total, base + local_index() < kResults);
  }
}
