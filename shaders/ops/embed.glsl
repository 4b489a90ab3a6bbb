// Rows of a matrix as vectors: row ids[t] for each token, one invocation a group of 32 weights.

layout(constant_id = 6) const uint kOutOrder = 0;
layout(constant_id = 9) const float kScale = 1.0;

#include "common/order.glsl"

void main() {
  uint g = gl_WorkGroupID.x * kLocal + gl_LocalInvocationIndex;
  uint token = gl_WorkGroupID.z;
  if (g >= kGroups || token >= step_.tokens)
    return;
  vec4 w[8];
  decode_group(push.p[0], min(step_.ids[token], kRows - 1), g, w);
  uint out_at = push.p[2] + token * push.p[6];
  for (uint j = 0; j < 8; ++j)
    for (uint c = 0; c < 4; ++c)
      if (32 * g + 4 * j + c < kCols)
        a32[out_at + place_of(32 * g + 4 * j + c, kOutOrder)] = w[j][c] * kScale;
}
