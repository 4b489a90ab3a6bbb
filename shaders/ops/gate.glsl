// out = input * function(aux), one value of aux for kEach of input. One invocation a value; grid: values in x, tokens in z.
// All natural, the result in out order.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;
layout(constant_id = SPEC_GROUP) const uint kEach = 1;
layout(constant_id = SPEC_FUNCTION) const uint kFunction = 0; // 0 logistic, 1 softplus
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;

#include "common/order.glsl"

void main() {
  uint i = gl_WorkGroupID.x * kLocal + gl_LocalInvocationIndex;
  if (i >= kCount || gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  float g = a32[aux_row(token) + i / kEach];
  float f = kFunction == 0 ? 1.0 / (1.0 + exp(-g)) : max(g, 0.0) + log(1.0 + exp(-abs(g)));
  a32[out_row(token) + place_of(i, kOutOrder)] = a32[input_row(token) + i] * f;
}
