// out = sum over the winners of weight * (down act). A workgroup has one hidden row; grid: hidden rows in x, tokens in z.
// Input: the rows of bank_gate_up. Out: natural. With kBias PUSH_VECTOR has a bias an expert.

#include "common/group_sum.glsl"

layout(constant_id = SPEC_BIAS) const uint kBias = 0;

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z, row = gl_WorkGroupID.x;
  const uint groups = kInner / 32;
  vec4 sum = vec4(0.0);
  for (uint j = 0; j < kWinners; ++j) {
    uint slot = winner_slot(token, j);
    if (slot == kNoSlot)
      continue;
    uint segment = slot / segment_slots(), start = slot % segment_slots() * kDownSlotWords;
    float weight = kPreweighted != 0 ? 1.0 : winner_weight(token, j);
    for (uint g = local_index(); g < groups; g += kLocal) {
      vec4 w[8];
      bank_group(segment, start, kHidden, groups, row, g, w);
      for (uint i = 0; i < 8; ++i) {
        vec4 x = a128[input_row(token * kWinners + j) / 4 + 8 * g + i];
        sum = fma(w[i], x * weight, sum);
      }
    }
  }
  float total = group_sum((sum.x + sum.z) + (sum.y + sum.w));
  if (local_index() != 0)
    return;
  for (uint j = 0; kBias != 0 && j < kWinners; ++j)
    if (winner_slot(token, j) != kNoSlot)
      total = fma(winner_weight(token, j), v32[push[PUSH_VECTOR] + winner_expert(token, j) * kHidden + row], total);
  a32[out_row(token) + row] = stored(total);
}
