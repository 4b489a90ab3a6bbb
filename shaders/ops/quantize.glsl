// out = input in 8 bits. One invocation a group of 32 values; grid: groups in x, tokens in z. The input is in in order.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;
layout(constant_id = SPEC_IN_ORDER) const uint kInOrder = 0;

#include "common/order.glsl"
#include "common/q8.glsl"

void main() {
  uint g = gl_WorkGroupID.x * kLocal + gl_LocalInvocationIndex;
  if (32 * g >= kCount || gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  float values[32];
  for (uint i = 0; i < 32; ++i)
    values[i] = 32 * g + i < kCount ? a32[input_row(token) + place_of(32 * g + i, kInOrder)] : 0.0;
  q8_store(out_row(token), kCount, g, values);
}
