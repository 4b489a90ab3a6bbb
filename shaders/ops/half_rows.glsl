// out = rows of the input in f16 (common/half_row.glsl). A workgroup a row, of which a token has kRowsEach; grid: one in x, rows
// in z. The input is in in order.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;
layout(constant_id = SPEC_IN_ORDER) const uint kInOrder = 0;
layout(constant_id = SPEC_EXPERTS) const uint kRowsEach = 1;

#include "common/group_sum.glsl"
#include "common/half_row.glsl"
#include "common/order.glsl"

vec4 values(uint row, uint i) {
  vec4 x = vec4(0.0);
  [[unroll]] for (uint c = 0; c < 4; ++c)
    if (4 * i + c < kCount)
      x[c] = a32[input_row(row) + place_of(4 * i + c, kInOrder)];
  return x;
}

void main() {
  uint row = first_token() * kRowsEach + gl_WorkGroupID.z;
  if (gl_WorkGroupID.z >= token_count() * kRowsEach)
    return;
  const uint fours = half_padded(kCount) / 4;
  float largest = 0.0;
  for (uint i = local_index(); i < fours; i += kLocal) {
    vec4 x = abs(values(row, i));
    largest = max(largest, max(max(x.x, x.y), max(x.z, x.w)));
  }
  largest = group_max(largest);
  float factor = half_factor(largest);
  for (uint i = local_index(); i < fours; i += kLocal) {
    uvec2 words = half_words(values(row, i) * factor);
    au32[out_row(row) + 2 * i] = words.x;
    au32[out_row(row) + 2 * i + 1] = words.y;
  }
  if (local_index() == 0)
    a32[out_row(row) + 2 * fours] = half_inverse(largest);
}
