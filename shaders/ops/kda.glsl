// The delta rule with a decay a channel (formats/artifact/artifact.fbs, KdaOp), then a gated norm of each head. A workgroup has one
// head and walks the tokens; grid: heads in x. The cache binding has the states, [head][key][value].
// Input: q; aux: k; third: v; rows of f are as far apart as those of q and k, rows of the gate as those of v.

layout(constant_id = SPEC_HEADS) const uint kHeads = 1;
layout(constant_id = SPEC_HEAD_DIM) const uint kKeyDim = 32;
layout(constant_id = SPEC_VALUE_DIM) const uint kValueDim = 32;
layout(constant_id = SPEC_EPS) const float kEps = 1e-6;
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;
layout(constant_id = SPEC_RATES) const uint kRates = 0; // vectors of decays: 0 one a head, 1 one a channel, 2 each channel of each head
layout(constant_id = SPEC_FUNCTION) const uint kBounded = 0; // the sigmoid form, which goes down to kBound
layout(constant_id = SPEC_LIMIT) const float kBound = 0.0;

#include "common/group_sum.glsl"
#include "common/order.glsl"

shared float fades[kKeyDim];
#define DELTA_FADE(i) fades[i]
#include "common/delta.glsl"

float fade_of(uint h, uint i, float f) {
  float rate = exp(v32[push[PUSH_VECTOR] + (kRates == 0 ? h : kRates == 1 ? i : h * kKeyDim + i)]);
  float x = f + v32[push[PUSH_VECTOR2] + h * kKeyDim + i];
  return exp(kBounded != 0 ? kBound * logistic(rate * x) : -rate * softplus(x));
}

void main() {
  uint h = gl_WorkGroupID.x;
  for (uint t = 0; t < token_count(); ++t) {
    load_unit_keys(input_row(t) + h * kKeyDim, row_at(PUSH_AUX, PUSH_INPUT_STRIDE, t) + h * kKeyDim);
    for (uint i = local_index(); i < kKeyDim; i += kLocal)
      fades[i] = fade_of(h, i, a32[row_at(PUSH_FADES, PUSH_INPUT_STRIDE, t) + h * kKeyDim + i]);
    barrier();
    float beta = logistic(a32[row_at(PUSH_BETA, PUSH_BETA_STRIDE, t) + h]);
    float squares = delta_rule(h * kKeyDim * kValueDim, third_row(t) + h * kValueDim, beta, true);
    float factor = 1.0 / sqrt(group_sum(squares) / float(kValueDim) + kEps);
    for (uint v = local_index(); v < kValueDim; v += kLocal) {
      float gate = logistic(a32[row_at(PUSH_OPENING, PUSH_THIRD_STRIDE, t) + h * kValueDim + v]);
      a32[out_row(t) + place_of(h * kValueDim + v, kOutOrder)] = result[v] * factor * v32[push[PUSH_HEAD_NORM] + v] * gate;
    }
  }
}
