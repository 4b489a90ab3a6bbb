// out = activation(input) * aux, or the activation alone. One invocation a value; grid: values in x, tokens in z, kExperts rows
// each. The result is in out order, all else natural; or in 8 bits: groups of 32 in x, kLocal / 8 a workgroup;
// or in f16: one workgroup in x.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;
layout(constant_id = SPEC_ACTIVATION) const uint kActivation = 0;
layout(constant_id = SPEC_ALPHA) const float kAlpha = 0.0;
layout(constant_id = SPEC_LIMIT) const float kLimit = 0.0;
layout(constant_id = SPEC_ADD) const uint kGated = 1; // 0: there is no aux
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;
layout(constant_id = SPEC_EXPERTS) const uint kExperts = 1;
layout(constant_id = SPEC_QUANT_OUT) const uint kQuantOut = 0; // 1: in 8 bits, 2: in f16

#include "common/activation.glsl"
#include "common/store_values.glsl"

float result(uint row, uint i) {
  float gate = a32[input_row(row) + i];
  return kGated != 0 ? gated(gate, a32[aux_row(row) + i], kActivation, kAlpha, kLimit) : activate(gate, kActivation);
}
#define ROW_VALUE(i) ((i) < kCount ? result(row, i) : 0.0)

void main() {
  if (gl_WorkGroupID.z >= token_count() * kExperts)
    return;
  uint row = first_token() * kExperts + gl_WorkGroupID.z;
  STORE_VALUES(out_row(row))
}
