// The global expert bank: tensors as they stand in the file, in slots of segments, a storage buffer each. Slot s is in
// segment s / segment_slots(), there at s % segment_slots(). A slot holds gate, then up, in the segments that
// bank_gate_up reads, and down in those of bank_down.

#ifndef BANK_SEGMENTS
#define BANK_SEGMENTS 8
#endif

uint segment_slots() { return push[PUSH_SEGMENT_SLOTS]; }

layout(constant_id = SPEC_BANK_SLOT_WORDS) const uint kSlotWords = 4;     // of gate, and of up
layout(constant_id = SPEC_BANK_DOWN_SLOT_WORDS) const uint kDownSlotWords = 4;
layout(constant_id = SPEC_BANK_INNER) const uint kInner = 32;
layout(constant_id = SPEC_BANK_HIDDEN) const uint kHidden = 32;
layout(constant_id = SPEC_BANK_WINNERS) const uint kWinners = 2;       // slots a token, the shared expert's included
layout(constant_id = SPEC_BANK_LIMIT) const float kLimit = 0.0;      // gate at most, up within +- this; 0 = none
layout(constant_id = SPEC_BANK_PREWEIGHTED) const uint kPreweighted = 0;   // values between the products are rounded to bf16, the weight among them

const uint kNoSlot = 0xffffffffu;

layout(set = 0, binding = 6) readonly buffer BankSegments { uint w[]; } bank[BANK_SEGMENTS];

// A token's winners: slots, then weights, then the experts' numbers.
uint winner_slot(uint token, uint j) { return au32[push[PUSH_ROUTES] + token * 3 * kWinners + j]; }
float winner_weight(uint token, uint j) { return a32[push[PUSH_ROUTES] + (token * 3 + 1) * kWinners + j]; }
uint winner_expert(uint token, uint j) { return au32[push[PUSH_ROUTES] + (token * 3 + 2) * kWinners + j]; }

// Round to nearest even; infinities and NaN stay.
float to_bf16(float x) {
  uint b = floatBitsToUint(x);
  if ((b & 0x7f800000u) == 0x7f800000u)
    return x;
  return uintBitsToFloat((b + 0x7fff + (b >> 16 & 1)) & 0xffff0000u);
}
float stored(float x) { return kPreweighted != 0 ? to_bf16(x) : x; }
