// Causal attention of a prompt's tokens over the cache, on products of matrices of halves (common/matrices.glsl). A workgroup
// has one head of 64 tokens and takes positions kKeys at a time, counted from 0: what a token gets does not depend on the
// tokens beside it. Grid: heads in x, tokens in z, those with most before them first.
//
// Subgroups of 32: of each pair, both have the same 16 tokens, one the first half of columns, the other one the second half;
// columns are positions of scores, then kKeys values of a result at a time. Queries and sums stay in registers, in variables
// of their own (matmul_cm_i8.glsl says why). Keys and values each have a tile, and those of the next positions are on their
// way meanwhile. Four invocations a token make weights of scores. Keys are a step ahead of values in the tiles, so that the
// products of values and those of the next keys have no barrier between them.
//
// Queries are divided by a power of two, their own, so that none leaves the range of halves; keys and values beyond it, which
// other caches can hold, become the largest one. With kQuantOut = 2 results are rows in f16 (common/half_row.glsl).

#include "common/attention.glsl"
#include "common/activation.glsl"
#include "common/cache.glsl"
#include "common/half_row.glsl"
#include "common/order.glsl"

const uint kTokens = 64, kSharers = 4; // local size is kTokens * kSharers
const uint kKeys = 32;
const uint kColumns = kKeys / 2 / kSide;              // matrices of a half of the columns
const uint kPasses = (kValueDim + kKeys - 1) / kKeys; // over the values of a result
const uint kQueries = (kHeadDim + 15) / 16;           // matrices of a token's query
const uint kValueChunks = kPasses * kKeys / 8;
const uint kTileChunks = 2 * kQueries > kValueChunks ? 2 * kQueries : kValueChunks; // of 8 halves, of a key or value
// A row in 16 bytes: neighbours lie in other banks.
const uint kTileStride = kTileChunks + 1, kScoreStride = kKeys / 4 + 1, kWeightStride = kKeys / 8 + 1;
const uint kOwnChunks = (kKeys * kTileChunks + kLocal - 1) / kLocal; // of an invocation, on their way to the tile; at most 4

const float kNever = -1e30, kMostScore = 1e29, kMostHalf = 65504.0;

// Keys, then values; queries at first.
const uint kValueTile = kKeys * kTileStride;
shared uvec4 tile[2 * kKeys * kTileStride];
shared uvec4 scores[kTokens * kScoreStride]; // of four positions; the bits of floats
shared uvec4 weights[kTokens * kWeightStride];
shared float fades[kTokens];

// Values 8 c.. of a key or value as halves.
uvec4 eight_halves(vec4 low, vec4 high) {
  low = clamp(low, -kMostHalf, kMostHalf);
  high = clamp(high, -kMostHalf, kMostHalf);
  return uvec4(packHalf2x16(low.xy), packHalf2x16(low.zw), packHalf2x16(high.xy), packHalf2x16(high.zw));
}

uvec4 cached_halves(uint at, uint c, uint dim) {
  if (kCache == CACHE_F16 && kWholeChunks)
    return 8 * c < dim ? kvu128[at / 8 + c] : uvec4(0);
  vec4 low, high;
  cached_chunk(at, c, dim, low, high);
  return eight_halves(low, high);
}

uvec4 key0, key1, key2, key3, value0, value1, value2, value3;
#define EACH_KEY(DO) DO(0, key0) DO(1, key1) DO(2, key2) DO(3, key3)
#define EACH_VALUE(DO) DO(0, value0) DO(1, value1) DO(2, value2) DO(3, value3)

uint kv_head;

// Chunk n of this invocation, of positions from `base` on; zeros outside of [from, end).
uvec4 ask(uint n, uint base, uint from, uint end, bool keys) {
  uint i = n * kLocal + local_index(), p = base + i / kTileChunks, c = i % kTileChunks;
  if (p < from || p >= end || i >= kKeys * kTileChunks)
    return uvec4(0);
  uint row = cache_row(p);
  return keys ? cached_halves(key_at(row, kv_head), c, kHeadDim) : cached_halves(value_at(row, kv_head), c, kValueDim);
}
#define ASK_KEYS(n, asked) \
  if (n < kOwnChunks) \
    asked = ask(n, next, from, end, true);
#define ASK_VALUES(n, asked) \
  if (n < kOwnChunks) \
    asked = ask(n, next, from, end, false);

void leave(uint n, uint to, uvec4 chunk) {
  uint i = n * kLocal + local_index();
  if (i < kKeys * kTileChunks)
    tile[to + i / kTileChunks * kTileStride + i % kTileChunks] = chunk;
}
#define LEAVE_KEYS(n, asked) \
  if (n < kOwnChunks) \
    leave(n, 0, asked);
#define LEAVE_VALUES(n, asked) \
  if (n < kOwnChunks) \
    leave(n, kValueTile, asked);

float of_sharers(float x, bool largest) {
  [[unroll]] for (uint o = 1; o < kSharers; o *= 2) {
    float other = subgroupShuffleXor(x, o);
    x = largest ? max(x, other) : x + other;
  }
  return x;
}

// A query's values 8 c.. .
void query_chunk(uint start, uint c, out vec4 low, out vec4 high) {
  [[unroll]] for (uint k = 0; k < 4; ++k) {
    low[k] = 8 * c + k < kHeadDim ? a32[start + 8 * c + k] : 0.0;
    high[k] = 8 * c + 4 + k < kHeadDim ? a32[start + 8 * c + 4 + k] : 0.0;
  }
}

// The query of this invocation's token goes to the tile; what its products are to be multiplied by.
float leave_query(uint start, uint t, uint part) {
  float largest = 0.0;
  vec4 low, high;
  for (uint c = part; c < 2 * kQueries; c += kSharers) {
    query_chunk(start, c, low, high);
    low = max(abs(low), abs(high));
    largest = max(largest, max(max(low.x, low.y), max(low.z, low.w)));
  }
  uint power = clamp(floatBitsToUint(of_sharers(largest, true)) >> 23, 1u, 253u);
  float divided = uintBitsToFloat(254 - power << 23);
  for (uint c = part; c < 2 * kQueries; c += kSharers) {
    query_chunk(start, c, low, high);
    tile[t * kTileStride + c] = eight_halves(low * divided, high * divided);
  }
  return uintBitsToFloat(power << 23);
}

// Scores of 4 positions, and whether a token sees them.
vec4 seen_scores(vec4 products, float factor, uint p, uint first, uint last) {
  vec4 s = clamp(products * factor, -kMostScore, kMostScore);
  [[unroll]] for (uint k = 0; k < 4; ++k) {
    if (kSoftcap > 0.0)
      s[k] = kSoftcap * bounded_tanh(s[k] / kSoftcap);
    if (p + k < first || p + k > last)
      s[k] = kNever;
  }
  return s;
}

uvec2 rounded_weights(vec4 s, float peak, inout float sum) {
  vec4 w;
  [[unroll]] for (uint k = 0; k < 4; ++k)
    w[k] = s[k] == kNever ? 0.0 : exp(s[k] - peak);
  uvec2 halves = uvec2(packHalf2x16(w.xy), packHalf2x16(w.zw));
  vec2 a = unpackHalf2x16(halves.x), b = unpackHalf2x16(halves.y);
  sum += a.x + a.y + (b.x + b.y);
  return halves;
}

#define EACH_QUERY(DO) \
  DO(0, query0) DO(1, query1) DO(2, query2) DO(3, query3) DO(4, query4) DO(5, query5) DO(6, query6) DO(7, query7) \
  DO(8, query8) DO(9, query9) DO(10, query10) DO(11, query11) DO(12, query12) DO(13, query13) DO(14, query14) \
  DO(15, query15)
#define QUERY(n, query) FACTOR query;
#define LOAD_QUERY(n, query) \
  if (n < kQueries) { \
    LOAD_FACTOR(query, tile, own_token * kTileStride + 2 * n, kTileStride); \
  }

#define EACH_SCORE(DO) DO(0, score0) DO(1, score1)
#define CLEAR(n, sum) SUM sum = SUM_OF(0.0);
#define ADD_KEY(query, n, score, k) \
  { \
    SECOND key; \
    LOAD_SECOND_COLUMNS(key, tile, (own_column + kSide * n) * kTileStride + 2 * k, kTileStride); \
    ADD_PRODUCT(query, key, score); \
  }
#define ADD_KEYS(k, query) \
  if (k < kQueries) { \
    ADD_KEY(query, 0, score0, k) \
    ADD_KEY(query, 1, score1, k) \
  }
#define LEAVE_SCORE(n, score) \
  STORE_SUM(score, scores, own_token * kScoreStride + own_column / 4 + kSide / 4 * n, kScoreStride);

#define EACH_RESULT(DO) \
  DO(0, sum0) DO(1, sum1) DO(2, sum2) DO(3, sum3) DO(4, sum4) DO(5, sum5) DO(6, sum6) DO(7, sum7) \
  DO(8, sum8) DO(9, sum9) DO(10, sum10) DO(11, sum11) DO(12, sum12) DO(13, sum13) DO(14, sum14) DO(15, sum15)
const uint kResults = kPasses * kColumns;
#define FADE(n, sum) \
  if (n < kResults) { \
    TIMES_ROWS(sum, fade) \
  }
#define ADD_VALUE(n, sum) \
  if (n < kResults) { \
    SECOND value; \
    uint column = n / kColumns * kKeys + own_column + n % kColumns * kSide; \
    LOAD_SECOND(value, tile, kValueTile + 16 * k * kTileStride + column / 8, kTileStride); \
    ADD_PRODUCT(weight, value, sum); \
  }
#define LEAVE_RESULT(n, sum) \
  if (n / kColumns == pass && n < kResults) { \
    STORE_SUM(sum, scores, own_token * kScoreStride + own_column / 4 + n % kColumns * (kSide / 4), kScoreStride); \
  }

void main() {
  uint first = (gl_NumWorkGroups.z - 1 - gl_WorkGroupID.z) * kTokens;
  if (first >= token_count())
    return;
  uint token = first_token() + first, count = min(kTokens, token_count() - first), h = gl_WorkGroupID.x;
  kv_head = h / (kHeads / kKvHeads);
  uint from = first_position(token), end = token_position(token + count - 1) + 1;
  uint own_token = local_index() / 64 * 16, own_column = local_index() / 32 % 2 * (kKeys / 2); // of the subgroup
  uint t = local_index() / kSharers, part = local_index() % kSharers, of = token + min(t, count - 1);
  uint first_seen = first_position(of), last_seen = token_position(of);
  uint base = from / kKeys * kKeys, next = base;
  EACH_KEY(ASK_KEYS)
  EACH_VALUE(ASK_VALUES)
  float factor = leave_query(input_row(of) + h * kHeadDim, t, part) * kScale;
  barrier();
  EACH_QUERY(QUERY)
  EACH_QUERY(LOAD_QUERY)
  EACH_RESULT(CLEAR)
  float most = kNever, total = 0.0;
  barrier();
  EACH_KEY(LEAVE_KEYS)
  next += kKeys;
  EACH_KEY(ASK_KEYS)
  barrier();
  for (; base < end; base += kKeys) {
    EACH_SCORE(CLEAR)
    EACH_QUERY(ADD_KEYS)
    EACH_SCORE(LEAVE_SCORE)
    barrier();
    EACH_VALUE(LEAVE_VALUES)
    EACH_KEY(LEAVE_KEYS)
    EACH_VALUE(ASK_VALUES)
    next += kKeys;
    EACH_KEY(ASK_KEYS)
    vec4 s[kKeys / 4 / kSharers];
    float peak = most;
    [[unroll]] for (uint i = 0; i < kKeys / 4 / kSharers; ++i) {
      uint q = i * kSharers + part;
      s[i] = seen_scores(uintBitsToFloat(scores[t * kScoreStride + q]), factor, base + 4 * q, first_seen, last_seen);
      peak = max(peak, max(max(s[i].x, s[i].y), max(s[i].z, s[i].w)));
    }
    peak = of_sharers(peak, true);
    float fade_own = most == peak ? 1.0 : exp(most - peak), sum = 0.0;
    [[unroll]] for (uint i = 0; i < kKeys / 4 / kSharers; ++i) {
      uint q = i * kSharers + part;
      uvec2 halves = rounded_weights(s[i], peak, sum);
      weights[t * kWeightStride + q / 2][q % 2 * 2] = halves.x;
      weights[t * kWeightStride + q / 2][q % 2 * 2 + 1] = halves.y;
    }
    total = total * fade_own + of_sharers(sum, false);
    most = peak;
    if (part == 0)
      fades[t] = fade_own;
    barrier();
    SUM fade;
    LOAD_ROWS(fade, fades, own_token);
    EACH_RESULT(FADE)
    [[unroll]] for (uint k = 0; k < kKeys / 16; ++k) {
      FACTOR weight;
      LOAD_FACTOR(weight, weights, own_token * kWeightStride + 2 * k, kWeightStride);
      EACH_RESULT(ADD_VALUE)
    }
  }
  float last_fade = 1.0;
  if (kSinks != 0) {
    float sink = v32[push[PUSH_VECTOR] + h], peak = max(most, sink);
    last_fade = exp(most - peak);
    total = total * last_fade + exp(sink - peak);
  }
  barrier();
  if (part == 0)
    fades[t] = last_fade / total;
  barrier();
  SUM fade;
  LOAD_ROWS(fade, fades, own_token);
  EACH_RESULT(FADE)
  [[unroll]] for (uint pass = 0; pass < kPasses; ++pass) {
    barrier();
    EACH_RESULT(LEAVE_RESULT)
    barrier();
    uint d = pass * kKeys, values = min(kKeys, kValueDim - d);
    if (kQuantOut == 2) {
      for (uint i = local_index(); i < count * (kKeys / 4); i += kLocal)
        if (i % (kKeys / 4) * 4 < values) {
          uint r = i / (kKeys / 4), c = i % (kKeys / 4);
          uvec2 words = half_words(uintBitsToFloat(scores[r * kScoreStride + c]));
          uint to = out_row(token + r) + (h * kValueDim + d) / 2 + 2 * c;
          au32[to] = words.x;
          au32[to + 1] = words.y;
        }
      continue;
    }
    for (uint i = local_index(); i < count * kKeys; i += kLocal)
      if (i % kKeys < values)
        a32[out_row(token + i / kKeys) + place_of(h * kValueDim + d + i % kKeys, kOutOrder)] =
            uintBitsToFloat(scores[i / kKeys * kScoreStride + i % kKeys / 4][i % 4]);
  }
  // Results are no larger than values are, which halves hold as they are.
  if (kQuantOut == 2 && h == 0) {
    const uint used = kHeads * kValueDim / 2, words = half_padded(kHeads * kValueDim) / 2;
    for (uint i = local_index(); used != words && i < count * (words - used); i += kLocal)
      au32[out_row(token + i / (words - used)) + used + i % (words - used)] = 0;
    for (uint i = local_index(); i < count; i += kLocal)
      a32[out_row(token + i) + words] = 1.0;
  }
}
