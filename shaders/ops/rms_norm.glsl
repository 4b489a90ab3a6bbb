// s = input [+ aux]; out = s / sqrt(mean(s^2) + eps) * weight * scale [+ bias]; with kCentered the mean is taken off s first.
// The result is in out order, or in 8 bits or f16, all else natural. One workgroup a token; grid: tokens in z.

layout(constant_id = SPEC_ROWS) const uint kCount = 32; // values a row
layout(constant_id = SPEC_EPS) const float kEps = 1e-6;
layout(constant_id = SPEC_SCALE) const float kScale = 1.0;
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;
layout(constant_id = SPEC_ADD) const uint kAdd = 0;
layout(constant_id = SPEC_SUM_OUT) const uint kSumOut = 0;
layout(constant_id = SPEC_WEIGHTED) const uint kWeighted = 1;
layout(constant_id = SPEC_BIAS) const uint kBias = 0;
layout(constant_id = SPEC_CENTERED) const uint kCentered = 0;
layout(constant_id = SPEC_QUANT_OUT) const uint kQuantOut = 0; // 1: in 8 bits, 2: in f16; without kSumOut, which may change the input

#include "common/half_store.glsl"
#include "common/order.glsl"
#include "common/q8.glsl"

float row_value(uint token, uint i) {
  float s = a32[input_row(token) + i];
  return kAdd != 0 ? s + a32[aux_row(token) + i] : s;
}

float normed(float s, uint i, float mean, float factor) {
  float n = (s - mean) * factor;
  if (kWeighted != 0)
    n *= v32[push[PUSH_VECTOR] + i];
  n *= kScale;
  if (kBias != 0)
    n += v32[push[PUSH_VECTOR2] + i];
  return n;
}
#define ROW_VALUE(i) ((i) < kCount ? normed(row_value(token, i), i, mean, factor) : 0.0)

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  float mean = 0.0;
  if (kCentered != 0) {
    float sum = 0.0;
    for (uint i = local_index(); i < kCount; i += kLocal)
      sum += row_value(token, i);
    mean = group_sum(sum) / float(kCount);
  }
  float squares = 0.0;
  for (uint i = local_index(); i < kCount; i += kLocal) {
    float s = row_value(token, i) - mean;
    squares = fma(s, s, squares);
  }
  float factor = 1.0 / sqrt(group_sum(squares) / float(kCount) + kEps);
  if (kQuantOut == 2) {
    HALF_STORE_ROW(out_row(token), kCount)
    return;
  }
  if (kQuantOut != 0) {
    Q8_STORE_SPAN(out_row(token), kCount, 0, (kCount + 31) / 32)
    return;
  }
  for (uint i = local_index(); i < kCount; i += kLocal) {
    float s = row_value(token, i);
    if (kSumOut != 0)
      a32[third_row(token) + i] = s;
    a32[out_row(token) + place_of(i, kOutOrder)] = normed(s, i, mean, factor);
  }
}
