// Joins the shares of attention. A workgroup has one head of one token; grid: heads in x, tokens in z.

layout(constant_id = SPEC_HEADS) const uint kHeads = 1;
layout(constant_id = SPEC_VALUE_DIM) const uint kValueDim = 32;
layout(constant_id = SPEC_SHARES) const uint kShares = 2;
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;
layout(constant_id = SPEC_QUANT_OUT) const uint kQuantOut = 0;

#include "common/order.glsl"
#include "common/q8.glsl"

shared float result[kValueDim];

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint h = gl_WorkGroupID.x;
  const uint each = kValueDim + 2;
  uint first = push[PUSH_SHARES] + (token * kHeads + h) * kShares * each;
  float peak = a32[first];
  for (uint s = 1; s < kShares; ++s)
    peak = max(peak, a32[first + s * each]);
  float total = 0.0;
  for (uint s = 0; s < kShares; ++s)
    total = fma(a32[first + s * each + 1], exp(a32[first + s * each] - peak), total);
  for (uint d = local_index(); d < kValueDim; d += kLocal) {
    float sum = 0.0;
    for (uint s = 0; s < kShares; ++s)
      sum = fma(a32[first + s * each + 2 + d], exp(a32[first + s * each] - peak), sum);
    result[d] = sum / total;
  }
  barrier();
  if (kQuantOut == 0) {
    for (uint d = local_index(); d < kValueDim; d += kLocal)
      a32[out_row(token) + place_of(h * kValueDim + d, kOutOrder)] = result[d];
    return;
  }
  for (uint g = local_index(); g < kValueDim / 32; g += kLocal) {
    float values[32];
    for (uint i = 0; i < 32; ++i)
      values[i] = result[32 * g + i];
    q8_store(out_row(token), kHeads * kValueDim, h * (kValueDim / 32) + g, values);
  }
}
