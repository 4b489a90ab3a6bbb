// y = W x with activations in f32, in lane order.

#include "common/product.glsl"

// The last group of rows that are not whole groups: what lies behind the row's end counts nothing.
void cut_tail(uint g, inout vec4 w[8]) {
  for (uint j = 0; j < 8; ++j)
    for (uint c = 0; c < 4; ++c)
      if (32 * g + 4 * j + c >= kCols)
        w[j][c] = 0.0;
}

void load_input(uint token, uint g, bool cut, out vec4 x[8]) {
  uint at = input_row(token) / 4 + lane_group(g);
  for (uint j = 0; j < 8; ++j)
    x[j] = a128[at + 32 * j];
  if (cut)
    cut_tail(g, x);
}

#define WALK_FETCHES
#define WALK_FETCH(a, n, base, row)
#define WALK_FETCH_INPUT(a, item)
#define WALK_FETCHED
#define WALK_GROUP \
  bool cut = kCols % 32 != 0 && g + 1 == kGroups; \
  vec4 w[8]; \
  vec4 x[8];
#define WALK_INPUT(a, item) \
  if (kTokens == 1) \
    load_input(item, g, cut, x);
#define WALK_EACH_INPUT(item) \
  if (kTokens > 1) \
    load_input(item, g, cut, x);
#define WALK_WEIGHTS(n, base, row) \
  decode_group(base, row, g, w); \
  if (cut) \
    cut_tail(g, w);
#define WALK_ADD(sum) \
  for (uint j = 0; j < 8; ++j) \
    sum = fma(w[j], x[j], sum);
#define WALK_ADD_SHARE(sum, share) \
  vec4 part = vec4(0.0); \
  for (uint j = 0; j < 8; ++j) \
    part = fma(w[j], x[j], part); \
  sum = fma(part, vec4(share), sum);

#include "common/product_walk.glsl"
