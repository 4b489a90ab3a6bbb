// The gated delta rule (formats/artifact/artifact.fbs, GatedDeltaOp): for each token S = decay * S, S += key (x) beta * (value -
// S key), out = S query, then a gated norm of each head. A workgroup has one value head and walks the tokens; an
// invocation has columns of the state. Grid: value heads in x.
// Input: q, k and v; aux: z; third: a. The cache binding has the states, [head][key][value].

layout(constant_id = SPEC_HEADS) const uint kHeads = 1; // of values
layout(constant_id = SPEC_KV_HEADS) const uint kKeyHeads = 1;
layout(constant_id = SPEC_HEAD_DIM) const uint kKeyDim = 32;
layout(constant_id = SPEC_VALUE_DIM) const uint kValueDim = 32;
layout(constant_id = SPEC_EPS) const float kEps = 1e-6;
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;
layout(constant_id = SPEC_TILED) const uint kTiled = 0; // value head h uses key head h % kKeyHeads
layout(constant_id = SPEC_RATES) const uint kRates = 0; // the decays are -exp(A_log) already
layout(constant_id = SPEC_SIGMOID_GATE) const uint kSigmoidGate = 0;

#include "common/activation.glsl"
#include "common/group_sum.glsl"
#include "common/order.glsl"

float fade;
#define DELTA_FADE(i) fade
#include "common/delta.glsl"

void main() {
  uint h = gl_WorkGroupID.x, lane = local_index();
  uint key_head = kTiled != 0 ? h % kKeyHeads : h / (kHeads / kKeyHeads);
  float decay = v32[push[PUSH_VECTOR] + h];
  float rate = kRates != 0 ? decay : -exp(decay);
  for (uint t = 0; t < token_count(); ++t) {
    uint row = input_row(t);
    load_unit_keys(row + key_head * kKeyDim, row + (kKeyHeads + key_head) * kKeyDim);
    fade = exp(rate * softplus(a32[third_row(t) + h] + v32[push[PUSH_VECTOR2] + h]));
    float beta = logistic(a32[push[PUSH_BETA] + t * push[PUSH_BETA_STRIDE] + h]);
    float squares = delta_rule(h * kKeyDim * kValueDim, row + 2 * kKeyHeads * kKeyDim + h * kValueDim, beta, true);
    float factor = 1.0 / sqrt(group_sum(squares) / float(kValueDim) + kEps);
    for (uint v = lane; v < kValueDim; v += kLocal) {
      float z = a32[aux_row(t) + h * kValueDim + v];
      float gate = kSigmoidGate != 0 ? logistic(z) : times_logistic(z, z);
      a32[out_row(t) + place_of(h * kValueDim + v, kOutOrder)] = result[v] * factor * v32[push[PUSH_HEAD_NORM] + v] * gate;
    }
  }
}
