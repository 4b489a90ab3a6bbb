// Columns of a row that the mask in force cuts become zero. One invocation a value; grid: values in x, tokens in z. PUSH_OUT: the
// row, in out order.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;

#include "common/order.glsl"

void main() {
  uint i = gl_WorkGroupID.x * kLocal + gl_LocalInvocationIndex;
  if (i >= kCount || gl_WorkGroupID.z >= token_count() || kept(i))
    return;
  a32[out_row(first_token() + gl_WorkGroupID.z) + place_of(i, kOutOrder)] = 0.0;
}
