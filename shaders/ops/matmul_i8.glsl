// y = W x with activations in 8 bits: sums of integer products within what has one scale, then f32.

#include "common/product.glsl"
#include "common/product_i8.glsl"
#include "common/fetched.glsl"

#ifdef CODEC_PARTS
// Of codecs whose levels are sums of nibbles, less kPartZero: parts of 32 weights each, the second one counting -2. High nibbles
// stay where they are, sixteen times as large, which spares making bytes of levels.
int code_products(uvec4 codes, uint x[8]) {
  uvec4 parts[kParts];
  code_parts(codes, parts);
  int sum = 0;
  [[unroll]] for (uint p = 0; p < kParts; ++p) {
    int near = 0, far = 0;
    [[unroll]] for (uint u = 0; u < 4; ++u) {
      near += dot4(parts[p][u] & 0x0f0f0f0fu, x[u]);
      far += dot4_unsigned(x[4 + u], parts[p][u] & 0xf0f0f0f0u);
    }
    sum += (p == 0 ? 1 : -2) * (near + (far >> 4));
  }
  return sum;
}
#endif
#ifdef CODEC_PAIRS
// Of codecs that find levels by pairs of codes: activations are put in their order, which spares doing so with each row's levels.
int code_products(uvec4 codes, uint x[8]) {
  int sum = 0;
  [[unroll]] for (uint u = 0; u < 4; ++u) {
    uint near, far;
    code_pairs(codes[u], near, far);
    sum += dot4(near, (x[u] & 0xffffu) | x[4 + u] << 16) + dot4(far, x[u] >> 16 | (x[4 + u] & 0xffff0000u));
  }
  return sum;
}
#endif

// As add_group.
float add_fetched(Fetched f, uint x[8], float scale, uint both, float sum) {
#ifdef CODEC_PAIRS
  return add_scaled(code_products(f.codes[0], x), 0, 0, group_scale(f.words), scale, sum);
#elif defined(CODEC_PARTS)
  int codes = kPartZero != 0 || kMinimum ? code_sum(both, 0, x) : 0;
  return add_scaled(code_products(f.codes[0], x), codes, kPartZero, group_scale(f.words), scale, sum);
#else
  uint q[8];
  vec2 s[kScales];
  decode(f, q, s);
  return add_group(q, s, x, scale, both, sum);
#endif
}

// Behind what is asked for comes a barrier, because drivers move loads to where they are needed, which leaves memory idle. Only
// a subgroup waits, so that others compute meanwhile.
#define WALK_FETCHES \
  Fetched weights[kAhead * kMatrices * kTeamRows]; \
  Input inputs[kAhead];
#define WALK_FETCH(a, n, base, row) weights[n] = fetch(base, row, g);
#define WALK_FETCH_INPUT(a, item) inputs[a] = fetch_input(input_row(item), g);
#define WALK_FETCHED \
  if (kAhead * kMatrices * kTeamRows > 1) \
    subgroupBarrier();
#define WALK_GROUP
#define WALK_INPUT(a, item) \
  Input from = inputs[a];
#define WALK_EACH_INPUT(item) \
  if (kTokens > 1) \
    from = fetch_input(input_row(item), g);
#define WALK_WEIGHTS(n, base, at) Fetched group = weights[n];
#define WALK_X \
  uint x[8]; \
  set_words(from.near, from.far, x);
#define WALK_ADD(sum) \
  WALK_X sum.x = add_fetched(group, x, from.scale, from.both, sum.x);
#define WALK_ADD_SHARE(sum, share) \
  WALK_X sum.x = fma(add_fetched(group, x, from.scale, from.both, 0.0), share, sum.x);

#include "common/product_walk.glsl"
