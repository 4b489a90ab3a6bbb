// Rows of a matrix as vectors: row ids[t] for each token, zeros where there is none; one invocation a group of 32 weights. A part
// of the matrix gives the rows that it has, the first one the zeros too.

layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;
layout(constant_id = SPEC_SCALE) const float kScale = 1.0;
layout(constant_id = SPEC_FIRST_ROW) const uint kFirstRow = 0;
layout(constant_id = SPEC_ALL_ROWS) const uint kAllRows = 0;

#include "common/order.glsl"

void main() {
#ifdef CODEC_SETUP
  codec_setup();
#endif
  uint g = gl_WorkGroupID.x * kLocal + gl_LocalInvocationIndex;
  if (g >= kGroups || gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint id = step_words[STEP_IDS + token], row = id - kFirstRow;
  if (row >= kRows && (id < kAllRows || kFirstRow != 0))
    return;
  vec4 w[8];
  decode_group(push[PUSH_WEIGHT], min(row, kRows - 1), g, w);
  float scale = row < kRows ? kScale : 0.0;
  uint out_at = out_row(token);
  for (uint j = 0; j < 8; ++j)
    for (uint c = 0; c < 4; ++c)
      if (32 * g + 4 * j + c < kCols)
        a32[out_at + place_of(32 * g + 4 * j + c, kOutOrder)] = w[j][c] * scale;
}
