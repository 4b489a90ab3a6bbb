// act = activation(gate x) * (up x) of every winner. A workgroup has one inner row of one winner; grid: inner rows in x, winners in y,
// tokens in z. Input: natural. Out: a row a winner, kWinners rows a token. With kBias PUSH_VECTOR and PUSH_VECTOR2 have the biases of
// gate and up, a row an expert.

#include "common/activation.glsl"
#include "common/group_sum.glsl"

layout(constant_id = SPEC_ACTIVATION) const uint kActivation = 0;
layout(constant_id = SPEC_ALPHA) const float kAlpha = 0.0;
layout(constant_id = SPEC_LIMIT) const float kBend = 0.0; // the activation's own limit
layout(constant_id = SPEC_BIAS) const uint kBias = 0;

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z, winner = gl_WorkGroupID.y, row = gl_WorkGroupID.x;
  uint slot = winner_slot(token, winner);
  if (slot == kNoSlot)
    return;
  uint segment = slot / segment_slots(), start = slot % segment_slots() * 2 * kSlotWords;
  const uint groups = kHidden / 32;
  vec4 gate = vec4(0.0), up = vec4(0.0);
  for (uint g = local_index(); g < groups; g += kLocal) {
    vec4 a[8], b[8];
    bank_group(segment, start, kInner, groups, row, g, a);
    bank_group(segment, start + kSlotWords, kInner, groups, row, g, b);
    for (uint j = 0; j < 8; ++j) {
      vec4 x = a128[input_row(token) / 4 + 8 * g + j];
      gate = fma(a[j], x, gate);
      up = fma(b[j], x, up);
    }
  }
  float gate_sum = group_sum((gate.x + gate.z) + (gate.y + gate.w));
  float up_sum = group_sum((up.x + up.z) + (up.y + up.w));
  if (local_index() != 0)
    return;
  if (kBias != 0) {
    uint at = winner_expert(token, winner) * kInner + row;
    gate_sum += v32[push[PUSH_VECTOR] + at];
    up_sum += v32[push[PUSH_VECTOR2] + at];
  }
  gate_sum = stored(gate_sum);
  up_sum = stored(up_sum);
  if (kLimit > 0.0) {
    gate_sum = min(gate_sum, kLimit);
    up_sum = clamp(up_sum, -kLimit, kLimit);
  }
  float act = gated(gate_sum, up_sum, kActivation, kAlpha, kBend);
  if (kPreweighted != 0)
    act = to_bf16(winner_weight(token, winner) * act);
  a32[out_row(token * kWinners + winner) + row] = act;
}
