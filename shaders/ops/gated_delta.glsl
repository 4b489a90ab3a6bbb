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

shared float query[kKeyDim];
shared float key[kKeyDim];
shared float result[kValueDim];

float softplus(float x) { return x > 20.0 ? x : max(x, 0.0) + log(1.0 + exp(-abs(x))); }

void main() {
  uint h = gl_WorkGroupID.x, lane = local_index();
  uint key_head = kTiled != 0 ? h % kKeyHeads : h / (kHeads / kKeyHeads);
  float decay = v32[push[PUSH_VECTOR] + h];
  float rate = kRates != 0 ? decay : -exp(decay);
  uint state = h * kKeyDim * kValueDim;
  for (uint t = 0; t < token_count(); ++t) {
    uint row = input_row(t);
    float q_squares = 0.0, k_squares = 0.0;
    barrier();
    for (uint i = lane; i < kKeyDim; i += kLocal) {
      query[i] = a32[row + key_head * kKeyDim + i];
      key[i] = a32[row + (kKeyHeads + key_head) * kKeyDim + i];
      q_squares = fma(query[i], query[i], q_squares);
      k_squares = fma(key[i], key[i], k_squares);
    }
    float q_factor = 1.0 / sqrt((group_sum(q_squares) + 1e-6) * float(kKeyDim));
    float k_factor = 1.0 / sqrt(group_sum(k_squares) + 1e-6);
    for (uint i = lane; i < kKeyDim; i += kLocal) {
      query[i] *= q_factor;
      key[i] *= k_factor;
    }
    barrier();
    float fade = exp(rate * softplus(a32[third_row(t) + h] + v32[push[PUSH_VECTOR2] + h]));
    float beta = 1.0 / (1.0 + exp(-a32[push[PUSH_BETA] + t * push[PUSH_BETA_STRIDE] + h]));
    float squares = 0.0;
    for (uint v = lane; v < kValueDim; v += kLocal) {
      float known = 0.0;
      for (uint i = 0; i < kKeyDim; ++i)
        known = fma(kv32[state + i * kValueDim + v] * fade, key[i], known);
      float value = a32[row + 2 * kKeyHeads * kKeyDim + h * kValueDim + v];
      float change = (value - known) * beta;
      float sum = 0.0;
      for (uint i = 0; i < kKeyDim; ++i) {
        float s = fma(key[i], change, kv32[state + i * kValueDim + v] * fade);
        kv32[state + i * kValueDim + v] = s;
        sum = fma(s, query[i], sum);
      }
      result[v] = sum;
      squares = fma(sum, sum, squares);
    }
    float factor = 1.0 / sqrt(group_sum(squares) / float(kValueDim) + kEps);
    for (uint v = lane; v < kValueDim; v += kLocal) {
      float z = a32[aux_row(t) + h * kValueDim + v];
      float gate = kSigmoidGate != 0 ? 1.0 / (1.0 + exp(-z)) : times_logistic(z, z);
      a32[out_row(t) + place_of(h * kValueDim + v, kOutOrder)] = result[v] * factor * v32[push[PUSH_HEAD_NORM] + v] * gate;
    }
  }
}
