// y = W x with activations in 8 bits: sums of integer products within what has one scale, then f32.

#include "common/product.glsl"
#include "common/product_i8.glsl"

#define WALK_BEGIN uint padded = q8_padded(kCols);
#define WALK_GROUP
#define WALK_INPUT(item) \
  uint row = input_row(item); \
  uint x[8]; \
  set_words(au128[row / 4 + q8_codes(g, 0)], au128[row / 4 + q8_codes(g, 1)], x); \
  float scale = a32[row + padded * 8 + g]; \
  uint both = au32[row + padded * 9 + g];
#define WALK_ONE_INPUT
#define WALK_EACH_INPUT WALK_INPUT(product_input(product_item(t), 0))
#define WALK_WEIGHTS(base, at) \
  uint q[8]; \
  vec2 s[kScales]; \
  group_levels(base, at, g, q); \
  group_scales(base, at, g, s);
#define WALK_ADD(sum) sum.x = add_group(q, s, x, scale, both, sum.x);
#define WALK_ADD_SHARE(sum, share) sum.x = fma(add_group(q, s, x, scale, both, 0.0), share, sum.x);

#include "common/product_walk.glsl"
