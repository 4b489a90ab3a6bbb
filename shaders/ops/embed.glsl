// Rows of a matrix as vectors: row ids[t] for each token, zeros where there is none; one invocation a group of 32 weights. A part
// of the matrix gives the rows that it has, the first one the zeros too. With kNormOut the result is prepared for products as
// common/product.glsl says.

layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;
layout(constant_id = SPEC_SCALE) const float kScale = 1.0;
layout(constant_id = SPEC_FIRST_ROW) const uint kFirstRow = 0;
layout(constant_id = SPEC_ALL_ROWS) const uint kAllRows = 0;
layout(constant_id = SPEC_NORM_OUT) const uint kNormOut = 0;
layout(constant_id = SPEC_QUANT_OUT) const uint kQuantOut = 0;

#include "common/group_sum.glsl"
#include "common/order.glsl"
#include "common/q8.glsl"

void main() {
#ifdef CODEC_SETUP
  codec_setup();
#endif
  uint g = gl_WorkGroupID.x * kLocal + local_index();
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint id = step_words[STEP_IDS + token], row = id - kFirstRow;
  if (row >= kRows && (id < kAllRows || kFirstRow != 0))
    return;
  float squares = 0.0;
  if (g < kGroups) {
    float normed[32];
    vec4 w[8];
    decode_group(push[PUSH_WEIGHT], min(row, kRows - 1), g, w);
    float scale = row < kRows ? kScale : 0.0;
    uint out_at = out_row(token);
    [[unroll]] for (uint i = 0; i < 32; ++i) {
      bool there = 32 * g + i < kCols;
      float y = w[i / 4][i % 4] * scale;
      if (there)
        a32[out_at + place_of(32 * g + i, kOutOrder)] = y;
      if (kNormOut != 0) {
        squares = there ? fma(y, y, squares) : squares;
        normed[i] = there ? y * v32[push[PUSH_VECTOR2] + 32 * g + i] : 0.0;
        if (kQuantOut != 1)
          a32[third_row(token) + place_of(32 * g + i, kOrderLanes)] = normed[i];
      }
    }
    if (kQuantOut != 0)
      q8_store(kQuantOut == 2 ? push[PUSH_EIGHT_BITS] : third_row(token), kCols, g, normed);
  }
  if (kNormOut != 0) {
    squares = group_sum(squares);
    if (local_index() == 0)
      a32[push[PUSH_SQUARES_OUT] + token * gl_NumWorkGroups.x + gl_WorkGroupID.x] = squares;
  }
}
