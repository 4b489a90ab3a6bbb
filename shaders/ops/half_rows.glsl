// out = rows of the input in f16 (common/half_row.glsl). A workgroup a row, of which a token has kRowsEach; grid: one in x, rows
// in z. The input is in in order.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;
layout(constant_id = SPEC_IN_ORDER) const uint kInOrder = 0;
layout(constant_id = SPEC_EXPERTS) const uint kRowsEach = 1;

#include "common/half_store.glsl"
#include "common/order.glsl"

float input_value(uint row, uint i) { return i < kCount ? a32[input_row(row) + place_of(i, kInOrder)] : 0.0; }
#define ROW_VALUE(i) input_value(row, i)

void main() {
  uint row = first_token() * kRowsEach + gl_WorkGroupID.z;
  if (gl_WorkGroupID.z >= token_count() * kRowsEach)
    return;
  HALF_STORE_ROW(out_row(row), kCount)
}
