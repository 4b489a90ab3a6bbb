// From the chosen experts of a token to slots of the bank. Experts that are not resident are left to the host: they take no part
// on the device, and the results get their number, then (expert, weight) of each, kChosen of them a token. The shared expert
// is a winner more. One invocation a token; grid: tokens in z.
// Input: the row of moe_route. Out: the row of winners. PUSH_VECTOR: remap table, a word an expert.

layout(constant_id = SPEC_EXPERTS) const uint kChosen = 2;
layout(constant_id = SPEC_BANK_WINNERS) const uint kWinners = 2;
layout(constant_id = SPEC_BANK_SHARED_SLOT) const uint kSharedSlot = 0xffffffffu; // no shared expert
layout(constant_id = SPEC_SCALE) const float kSharedWeight = 1.0;

void main() {
  if (gl_WorkGroupID.z >= token_count() || gl_LocalInvocationIndex != 0)
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint cold_at = push[PUSH_THIRD] + token * (1 + 2 * kChosen), cold = 0;
  for (uint k = 0; k < kWinners; ++k) {
    bool routed = k < kChosen;
    uint expert = routed ? au32[input_row(token) + k] : 0;
    float weight = routed ? a32[input_row(token) + kChosen + k] : kSharedWeight;
    uint slot = routed ? vu32[push[PUSH_VECTOR] + expert] : kSharedSlot;
    if (slot == 0xffffffffu && routed) {
      results[cold_at + 1 + 2 * cold] = expert;
      results[cold_at + 2 + 2 * cold] = floatBitsToUint(weight);
      ++cold;
    }
    au32[out_row(token) + k] = slot;
    a32[out_row(token) + kWinners + k] = weight;
    au32[out_row(token) + 2 * kWinners + k] = expert;
  }
  results[cold_at] = cold;
}
