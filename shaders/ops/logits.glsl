// out = cap * tanh(scale * input / cap), or scale * input. One invocation a value; grid: values in x and y, tokens in z.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;
layout(constant_id = SPEC_SCALE) const float kScale = 1.0;
layout(constant_id = SPEC_SOFTCAP) const float kSoftcap = 0.0;

#include "common/activation.glsl"

void main() {
  uint i = group_index() * kLocal + gl_LocalInvocationIndex;
  if (i >= kCount || gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  float x = kScale * a32[input_row(token) + i];
  a32[out_row(token) + i] = kSoftcap > 0.0 ? kSoftcap * bounded_tanh(x / kSoftcap) : x;
}
