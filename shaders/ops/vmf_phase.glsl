// Linear attention on phases (formats/artifact/artifact.fbs, VmfPhaseOp): queries and keys are the cosines, then the sines of
// their angles. A workgroup has one head and walks the tokens; grid: heads in x. The cache binding has the states,
// [head][row][value], of two rows a phase.
// Input: angles of queries; aux: those of keys, in rows as far apart; third: values; beta: gates.

layout(constant_id = SPEC_HEAD_DIM) const uint kKeyDim = 32; // rows of the state
layout(constant_id = SPEC_VALUE_DIM) const uint kValueDim = 32;
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;
layout(constant_id = SPEC_SCALE) const float kScale = 1.0; // of cosines and sines
layout(constant_id = SPEC_CORRECTS) const uint kCorrects = 0; // what the state knows of a key is taken off its value
layout(constant_id = SPEC_WEIGHTED) const uint kGated = 0;

#include "common/group_sum.glsl"
#include "common/order.glsl"
#include "common/turn.glsl"

shared float fades[kKeyDim];
#define DELTA_FADE(i) fades[i]
#include "common/delta.glsl"

const uint kPhases = kKeyDim / 2;

void main() {
  uint h = gl_WorkGroupID.x;
  for (uint i = local_index(); i < kKeyDim; i += kLocal)
    fades[i] = exp(-exp(v32[push[PUSH_VECTOR] + h * kKeyDim + i]));
  for (uint t = 0; t < token_count(); ++t) {
    barrier();
    for (uint i = local_index(); i < kPhases; i += kLocal) {
      vec2 q = kScale * cosine_sine(a32[input_row(t) + h * kPhases + i]);
      vec2 k = kScale * cosine_sine(a32[row_at(PUSH_AUX, PUSH_INPUT_STRIDE, t) + h * kPhases + i]);
      query[i] = q.x;
      query[kPhases + i] = q.y;
      key[i] = k.x;
      key[kPhases + i] = k.y;
    }
    barrier();
    float rate = kGated != 0 ? logistic(a32[row_at(PUSH_BETA, PUSH_BETA_STRIDE, t) + h]) : 1.0;
    delta_rule(h * kKeyDim * kValueDim, third_row(t) + h * kValueDim, rate, kCorrects != 0);
    for (uint v = local_index(); v < kValueDim; v += kLocal)
      a32[out_row(t) + place_of(h * kValueDim + v, kOutOrder)] = result[v];
  }
}
