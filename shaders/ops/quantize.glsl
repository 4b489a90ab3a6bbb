// out = input in 8 bits. Eight invocations a group of 32 values, or one where subgroups are smaller; grid: groups in x, tokens in
// z. The input is in in order.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;
layout(constant_id = SPEC_IN_ORDER) const uint kInOrder = 0;

#include "common/order.glsl"
#include "common/q8.glsl"

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint g = gl_WorkGroupID.x * (kLocal / 8) + local_index() / 8, k = local_index() % 8;
  bool there = 32 * g < kCount;
  if (gl_SubgroupSize >= 8) {
    vec4 x = vec4(0.0);
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      uint i = 32 * g + 4 * k + c;
      if (i < kCount)
        x[c] = a32[input_row(token) + place_of(i, kInOrder)];
    }
    q8_store_eighth(out_row(token), kCount, g, k, x, there);
    return;
  }
  if (!there || k != 0)
    return;
  float values[32];
  for (uint i = 0; i < 32; ++i)
    values[i] = 32 * g + i < kCount ? a32[input_row(token) + place_of(32 * g + i, kInOrder)] : 0.0;
  q8_store(out_row(token), kCount, g, values);
}
