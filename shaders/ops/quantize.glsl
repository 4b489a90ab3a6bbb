// out = input in 8 bits; grid: groups of 32 values in x, kLocal / 8 a workgroup, tokens in z. The input is in in order.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;
layout(constant_id = SPEC_IN_ORDER) const uint kInOrder = 0;

#include "common/order.glsl"
#include "common/q8.glsl"

float input_value(uint token, uint i) { return i < kCount ? a32[input_row(token) + place_of(i, kInOrder)] : 0.0; }
#define ROW_VALUE(i) input_value(token, i)

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  Q8_STORE_SPAN(out_row(token), kCount, gl_WorkGroupID.x * (kLocal / 8), kLocal / 8)
}
