// y = W x with activations in 8 bits: sums of integer products within what has one scale, then f32.

#include "common/product.glsl"
#include "common/product_i8.glsl"

// What memory has of a group of weights, or levels and scales where a codec does not say what that is (CODEC_FETCH).
#ifdef CODEC_FETCH
struct Fetched {
  uvec4 codes[kFetched];
  uint scales;
};
Fetched fetch(uint base, uint row, uint g) {
  Fetched f;
  group_fetch(base, row, g, f.codes, f.scales);
  return f;
}
void decode(Fetched f, out uint q[8], out vec2 s[kScales]) { group_fetched(f.codes, f.scales, q, s); }
#else
struct Fetched {
  uint levels[8];
  vec2 scales[kScales];
};
Fetched fetch(uint base, uint row, uint g) {
  Fetched f;
  group_levels(base, row, g, f.levels);
  group_scales(base, row, g, f.scales);
  return f;
}
void decode(Fetched f, out uint q[8], out vec2 s[kScales]) {
  q = f.levels;
  s = f.scales;
}
#endif

struct Input {
  uvec4 near, far;
  float scale;
  uint both;
};
Input fetch_input(uint item, uint g) {
  uint row = input_row(item);
  return Input(au128[row / 4 + q8_codes(g, 0)], au128[row / 4 + q8_codes(g, 1)], a32[row + q8_padded(kCols) * 8 + g],
               au32[row + q8_padded(kCols) * 9 + g]);
}

// A barrier, because drivers move loads to where they are needed, which leaves memory idle.
#define WALK_FETCHES \
  Fetched weights[kAhead * kMatrices * kTeamRows]; \
  Input inputs[kAhead];
#define WALK_FETCH(a, n, base, row) weights[n] = fetch(base, row, g);
#define WALK_FETCH_INPUT(a, item) inputs[a] = fetch_input(item, g);
#define WALK_FETCHED \
  if (kAhead * kMatrices * kTeamRows > 1) \
    barrier();
#define WALK_GROUP
#define WALK_INPUT(a, item) \
  Input from = inputs[a];
#define WALK_EACH_INPUT(item) \
  if (kTokens > 1) \
    from = fetch_input(item, g);
#define WALK_WEIGHTS(n, base, at) \
  uint q[8]; \
  vec2 s[kScales]; \
  decode(weights[n], q, s);
#define WALK_X \
  uint x[8]; \
  set_words(from.near, from.far, x);
#define WALK_ADD(sum) \
  WALK_X sum.x = add_group(q, s, x, from.scale, from.both, sum.x);
#define WALK_ADD_SHARE(sum, share) \
  WALK_X sum.x = fma(add_group(q, s, x, from.scale, from.both, 0.0), share, sum.x);

#include "common/product_walk.glsl"
