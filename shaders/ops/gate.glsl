// out = input * function(aux), one value of aux for kEach of input. One invocation a value; grid: values in x, tokens in z.
// All natural, the result in out order; or in 8 bits: groups of 32 in x, kLocal / 8 a workgroup;
// or in f16: one workgroup in x.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;
layout(constant_id = SPEC_GROUP) const uint kEach = 1;
layout(constant_id = SPEC_FUNCTION) const uint kFunction = 0; // 0 logistic, 1 softplus
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;
layout(constant_id = SPEC_QUANT_OUT) const uint kQuantOut = 0; // 1: in 8 bits, 2: in f16

#include "common/store_values.glsl"

float result(uint token, uint i) {
  float g = a32[aux_row(token) + i / kEach];
  float f = kFunction == 0 ? 1.0 / (1.0 + exp(-g)) : max(g, 0.0) + log(1.0 + exp(-abs(g)));
  return a32[input_row(token) + i] * f;
}
#define ROW_VALUE(i) ((i) < kCount ? result(token, i) : 0.0)

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  STORE_VALUES(out_row(token))
}
