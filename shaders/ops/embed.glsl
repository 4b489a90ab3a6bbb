// Rows of a matrix as vectors: row ids[t] for each token, zeros where there is none; eight invocations a group of 32 weights, of
// which each takes four. A part of the matrix gives the rows that it has, the first one the zeros too. With kNormOut the result is
// prepared for products as common/product.glsl says.

layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;
layout(constant_id = SPEC_SCALE) const float kScale = 1.0;
layout(constant_id = SPEC_FIRST_ROW) const uint kFirstRow = 0;
layout(constant_id = SPEC_ALL_ROWS) const uint kAllRows = 0;
layout(constant_id = SPEC_NORM_OUT) const uint kNormOut = 0;
layout(constant_id = SPEC_QUANT_OUT) const uint kQuantOut = 0;

#include "common/group_sum.glsl"
#include "common/order.glsl"
#include "common/q8.glsl"

shared float normed[4 * kLocal];
#define ROW_VALUE(i) normed[(i) - 32 * first]

void main() {
#ifdef CODEC_SETUP
  codec_setup();
#endif
  uint first = gl_WorkGroupID.x * (kLocal / 8);
  uint g = first + local_index() / 8, k = local_index() % 8;
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint id = step_words[STEP_IDS + token], row = id - kFirstRow;
  if (row >= kRows && (id < kAllRows || kFirstRow != 0))
    return;
  float squares = 0.0;
  vec4 own = vec4(0.0);
  if (g < kGroups) {
    vec4 w[8];
    decode_group(push[PUSH_WEIGHT], min(row, kRows - 1), g, w);
    vec4 x = w[0];
    [[unroll]] for (uint j = 1; j < 8; ++j)
      x = j == k ? w[j] : x;
    float scale = row < kRows ? kScale : 0.0;
    uint out_at = out_row(token);
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      uint i = 32 * g + 4 * k + c;
      if (i >= kCols)
        continue;
      float y = x[c] * scale;
      a32[out_at + place_of(i, kOutOrder)] = y;
      if (kNormOut != 0) {
        squares = fma(y, y, squares);
        own[c] = y * v32[push[PUSH_VECTOR2] + i];
        if (kQuantOut != 1)
          a32[third_row(token) + place_of(i, kOrderLanes)] = own[c];
      }
    }
  }
  if (kQuantOut != 0) {
    [[unroll]] for (uint c = 0; c < 4; ++c)
      normed[4 * local_index() + c] = own[c];
    barrier();
    Q8_STORE_SPAN(kQuantOut == 2 ? push[PUSH_EIGHT_BITS] : third_row(token), kCols, first, kLocal / 8)
  }
  if (kNormOut != 0) {
    squares = group_sum(squares);
    if (local_index() == 0)
      a32[push[PUSH_SQUARES_OUT] + token * gl_NumWorkGroups.x + gl_WorkGroupID.x] = squares;
  }
}
