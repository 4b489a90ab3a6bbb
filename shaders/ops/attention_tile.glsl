// Causal attention of many tokens over the cache. A workgroup has one head of kTokens tokens, which share what is read of keys
// and values; grid: heads in x, tokens in z. Positions are taken kLocal at a time, counted from the first one there is: what a
// token gets does not depend on the tokens beside it. First an invocation has a position, then values of a head.

#include "common/attention.glsl"

layout(constant_id = SPEC_TOKENS) const uint kTokens = 16;

#include "common/activation.glsl"
#include "common/cache.glsl"
#include "common/order.glsl"
#include "common/q8.glsl"

const float kNever = -1e30;
const uint kChunks = (kHeadDim + 15) / 16 * 2;             // of 8 values, of a key; two are read together
const uint kOwnValues = (kValueDim + kLocal - 1) / kLocal; // of a result, an invocation's
const uint kSharers = kLocal / kTokens;                    // invocations that look for one token's largest score

shared vec4 queries[kTokens * kChunks * 2];
shared vec4 scores[kTokens * kLocal / 4]; // of four positions; then weights
shared float peaks[kTokens * kSharers];
shared float most[kTokens], fades[kTokens], totals[kTokens];
shared float staged[kQuantOut != 0 ? kTokens * kValueDim : 1];

float value_at_dim(uint at, uint d) {
  if (kCache == CACHE_F16)
    return unpackHalf2x16(kvu32[(at + d) / 2] >> (at + d) % 2 * 16).x;
  if (kCache == CACHE_Q8)
    return float(bitfieldExtract(int(kvu32[at + (kValueDim + 31) / 32 + d / 4]), int(d % 4 * 8), 8)) * kv32[at + d / 32];
  return kv32[at + d];
}

// Chunks c and c + 1 of a key, zeros behind its end.
void two_chunks(uint at, uint c, out vec4 key[4]) {
  cached_chunk(at, c, kHeadDim, key[0], key[1]);
  cached_chunk(at, c + 1, kHeadDim, key[2], key[3]);
}

// Values d of four positions from p on; those outside of [from, end) count nothing.
vec4 four_values(uint p, uint from, uint end, uint kv_head, uint d) {
  vec4 value;
  [[unroll]] for (uint k = 0; k < 4; ++k)
    value[k] = value_at_dim(value_at(cache_row(clamp(p + k, from, end - 1)), kv_head), d);
  return value;
}

// Scores of this invocation's position, of all tokens.
void score(uint at, uint position, uint token, uint count) {
  float sums[kTokens];
  [[unroll]] for (uint t = 0; t < kTokens; ++t)
    sums[t] = 0.0;
  vec4 key[4], next[4];
  two_chunks(at, 0, next);
  for (uint c = 0; c < kChunks; c += 2) {
    key = next;
    two_chunks(at, c + 2, next);
    [[unroll]] for (uint t = 0; t < kTokens; ++t)
      [[unroll]] for (uint j = 0; j < 4; ++j) {
        vec4 q = queries[(t * kChunks + c) * 2 + j];
        sums[t] = fma(q.x, key[j].x, fma(q.y, key[j].y, fma(q.z, key[j].z, fma(q.w, key[j].w, sums[t]))));
      }
  }
  [[unroll]] for (uint t = 0; t < kTokens; ++t) {
    uint of = token + min(t, count - 1);
    float s = kSoftcap > 0.0 ? kSoftcap * bounded_tanh(sums[t] / kSoftcap) : sums[t];
    bool seen = position <= token_position(of) && position >= first_position(of);
    scores[(t * kLocal + local_index()) / 4][local_index() % 4] = seen ? s : kNever;
  }
}

// The scores become weights relative to the largest one so far.
void weigh() {
  uint t = local_index() / kSharers, part = local_index() % kSharers;
  float peak = kNever;
  for (uint i = part; i < kLocal; i += kSharers)
    peak = max(peak, scores[(t * kLocal + i) / 4][i % 4]);
  peaks[local_index()] = peak;
  barrier();
  float before = most[t];
  peak = before;
  for (uint i = 0; i < kSharers; ++i)
    peak = max(peak, peaks[t * kSharers + i]);
  float sum = 0.0;
  for (uint i = part; i < kLocal; i += kSharers) {
    float s = scores[(t * kLocal + i) / 4][i % 4];
    float weight = s == kNever ? 0.0 : exp(s - peak);
    scores[(t * kLocal + i) / 4][i % 4] = weight;
    sum += weight;
  }
  barrier();
  peaks[local_index()] = sum;
  barrier();
  if (part == 0) {
    float fade = exp(before - peak), total = totals[t] * fade;
    for (uint i = 0; i < kSharers; ++i)
      total += peaks[t * kSharers + i];
    most[t] = peak;
    fades[t] = fade;
    totals[t] = total;
  }
  barrier();
}

void store_codes(uint token, uint h, uint count) {
  barrier();
  const uint each = kValueDim / 32;
#define CODES_ROW(i) out_row(token + (i) / each)
#define CODES_GROUP(i) (h * each + (i) % each)
#define CODES_VALUE(i, j) staged[(i) / each * kValueDim + (i) % each * 32 + (j)]
#define CODES_THERE(i) true
  Q8_STORE_GROUPS(count * each, kHeads * kValueDim, CODES)
}

void main() {
  uint first = gl_WorkGroupID.z * kTokens;
  if (first >= token_count())
    return;
  uint token = first_token() + first, count = min(kTokens, token_count() - first);
  uint h = gl_WorkGroupID.x, kv_head = h / (kHeads / kKvHeads);
  for (uint i = local_index(); i < kTokens * kChunks * 2; i += kLocal) {
    uint row = input_row(token + min(i / (kChunks * 2), count - 1)) + h * kHeadDim, d = i % (kChunks * 2) * 4;
    vec4 q = vec4(0.0);
    [[unroll]] for (uint k = 0; k < 4; ++k)
      if (d + k < kHeadDim)
        q[k] = a32[row + d + k] * kScale;
    queries[i] = q;
  }
  for (uint t = local_index(); t < kTokens; t += kLocal) {
    most[t] = kNever;
    totals[t] = 0.0;
  }
  float sums[kTokens * kOwnValues];
  [[unroll]] for (uint v = 0; v < kTokens * kOwnValues; ++v)
    sums[v] = 0.0;
  uint last = token_position(token + count - 1);
  for (uint base = first_position(token) / kLocal * kLocal; base <= last; base += kLocal) {
    barrier();
    uint position = base + local_index();
    score(key_at(cache_row(clamp(position, first_position(token), last)), kv_head), position, token, count);
    barrier();
    weigh();
    [[unroll]] for (uint v = 0; v < kTokens * kOwnValues; ++v)
      sums[v] *= fades[v / kOwnValues];
    uint from = max(base, first_position(token)), end = min(base + kLocal, last + 1);
    [[unroll]] for (uint o = 0; o < kOwnValues; ++o) {
      uint d = min(o * kLocal + local_index(), kValueDim - 1);
      vec4 value, next = four_values(base, from, end, kv_head, d), after = four_values(base + 4, from, end, kv_head, d);
      for (uint p = base; p < end; p += 4) {
        value = next;
        next = after;
        after = four_values(p + 8, from, end, kv_head, d);
        [[unroll]] for (uint t = 0; t < kTokens; ++t) {
          vec4 weight = scores[(t * kLocal + p - base) / 4];
          uint v = t * kOwnValues + o;
          sums[v] = fma(weight.x, value.x, fma(weight.y, value.y, fma(weight.z, value.z, fma(weight.w, value.w, sums[v]))));
        }
      }
    }
  }
  [[unroll]] for (uint t = 0; t < kTokens; ++t) {
    if (t >= count)
      break;
    float total = totals[t], fade = 1.0;
    if (kSinks != 0) {
      float sink = v32[push[PUSH_VECTOR] + h], peak = max(most[t], sink);
      fade = exp(most[t] - peak);
      total = total * fade + exp(sink - peak);
    }
    [[unroll]] for (uint o = 0; o < kOwnValues; ++o) {
      uint d = o * kLocal + local_index();
      if (d >= kValueDim)
        continue;
      float y = sums[t * kOwnValues + o] * fade / total;
      if (kQuantOut != 0)
        staged[t * kValueDim + d] = y;
      else
        a32[out_row(token + t) + place_of(h * kValueDim + d, kOutOrder)] = y;
    }
  }
  if (kQuantOut != 0)
    store_codes(token, h, count);
}
