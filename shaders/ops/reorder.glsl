// out = input, in out order; the input in in order. One invocation a value; grid: values in x, tokens in z.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 1;
layout(constant_id = SPEC_IN_ORDER) const uint kInOrder = 0;

#include "common/order.glsl"

void main() {
  uint i = gl_WorkGroupID.x * kLocal + gl_LocalInvocationIndex;
  if (i >= kCount || gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  a32[out_row(token) + place_of(i, kOutOrder)] = a32[input_row(token) + place_of(i, kInOrder)];
}
