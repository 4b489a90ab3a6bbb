// out = activation(input) * aux, or the activation alone. One invocation a value; grid: values in x, tokens in z, kExperts rows
// each. The result is in out order, all else natural.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;
layout(constant_id = SPEC_ACTIVATION) const uint kActivation = 0;
layout(constant_id = SPEC_ALPHA) const float kAlpha = 0.0;
layout(constant_id = SPEC_LIMIT) const float kLimit = 0.0;
layout(constant_id = SPEC_ADD) const uint kGated = 1; // 0: there is no aux
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;
layout(constant_id = SPEC_EXPERTS) const uint kExperts = 1;

#include "common/activation.glsl"
#include "common/order.glsl"

void main() {
  uint i = gl_WorkGroupID.x * kLocal + gl_LocalInvocationIndex;
  if (i >= kCount || gl_WorkGroupID.z >= token_count() * kExperts)
    return;
  uint row = first_token() * kExperts + gl_WorkGroupID.z;
  float gate = a32[input_row(row) + i];
  a32[out_row(row) + place_of(i, kOutOrder)] =
      kGated != 0 ? gated(gate, a32[aux_row(row) + i], kActivation, kAlpha, kLimit) : activate(gate, kActivation);
}
