// out[c] = input[from[c]], zero where there is no such column. One invocation a value; grid: values in x, tokens in z. The
// vector has the columns. The input is natural.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;

#include "common/order.glsl"

const uint kNowhere = 0xffffffffu;

void main() {
  uint i = gl_WorkGroupID.x * kLocal + gl_LocalInvocationIndex;
  if (i >= kCount || gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint from = vu32[push[PUSH_VECTOR] + i];
  a32[out_row(token) + place_of(i, kOutOrder)] = from == kNowhere ? 0.0 : a32[input_row(token) + from];
}
