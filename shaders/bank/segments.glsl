// The global expert bank: tensors as they stand in the file, in slots of segments, a storage buffer each. Slot s is in
// segment s / kSegmentSlots, there at s % kSegmentSlots; its words start at a multiple of the bank's slot size.

layout(constant_id = SPEC_BANK_SEGMENT_SLOTS) const uint kSegmentSlots = 1;
layout(constant_id = SPEC_BANK_SLOT_WORDS) const uint kSlotWords = 4;     // of gate and up
layout(constant_id = SPEC_BANK_DOWN_SLOT_WORDS) const uint kDownSlotWords = 4;
layout(constant_id = SPEC_BANK_INNER) const uint kInner = 32;
layout(constant_id = SPEC_BANK_HIDDEN) const uint kHidden = 32;
layout(constant_id = SPEC_BANK_WINNERS) const uint kWinners = 2;       // slots a token, the shared expert's included
layout(constant_id = SPEC_BANK_LIMIT) const float kLimit = 0.0;      // gate at most, up within +- this; 0 = none
layout(constant_id = SPEC_BANK_PREWEIGHTED) const uint kPreweighted = 0;   // values between the products are rounded to bf16, the weight among them

const uint kSegments = 8;
const uint kNoSlot = 0xffffffffu;

layout(set = 0, binding = 6) readonly buffer GateSegments { uint w[]; } gate_bank[kSegments];
layout(set = 0, binding = 7) readonly buffer UpSegments { uint w[]; } up_bank[kSegments];
layout(set = 0, binding = 8) readonly buffer DownSegments { uint w[]; } down_bank[kSegments];

// A token's winners: slots, then weights.
uint winner_slot(uint token, uint j) { return au32[push[PUSH_ROUTES] + token * 2 * kWinners + j]; }
float winner_weight(uint token, uint j) { return a32[push[PUSH_ROUTES] + (token * 2 + 1) * kWinners + j]; }

// Round to nearest even; infinities and NaN stay.
float to_bf16(float x) {
  uint b = floatBitsToUint(x);
  if ((b & 0x7f800000u) == 0x7f800000u)
    return x;
  return uintBitsToFloat((b + 0x7fff + (b >> 16 & 1)) & 0xffff0000u);
}
float stored(float x) { return kPreweighted != 0 ? to_bf16(x) : x; }
