// Scores of experts by how far a token lies from what each has learnt (formats/artifact/artifact.fbs, ResonanceOp). A workgroup has
// one expert and one token; grid: experts in x, tokens in z. For each expert four words at the vector: where its mean, its
// directions, its bias and its shell start, all ones for a shell that it does not have.

layout(constant_id = SPEC_COLS) const uint kWidth = 32;
layout(constant_id = SPEC_IN_ORDER) const uint kInOrder = 0;
layout(constant_id = SPEC_GROUP) const uint kRank = 0;

#include "common/group_sum.glsl"
#include "common/order.glsl"

const uint kNone = 0xffffffffu;
#define kClosed uintBitsToFloat(0xff800000u)

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint x = input_row(token);
  uint own = push[PUSH_VECTOR] + 4 * gl_WorkGroupID.x;
  uint mean = vu32[own], directions = vu32[own + 1];
  float error = 0.0;
  for (uint i = local_index(); i < kWidth; i += kLocal) {
    float away = a32[x + place_of(i, kInOrder)] - v32[mean + i];
    error = fma(away, away, error);
  }
  error = group_sum(error);
  for (uint r = 0; r < kRank; ++r) {
    float along = 0.0;
    for (uint i = local_index(); i < kWidth; i += kLocal)
      along = fma(v32[directions + r * kWidth + i], a32[x + place_of(i, kInOrder)] - v32[mean + i], along);
    along = group_sum(along);
    error -= along * along;
  }
  if (local_index() == 0) {
    bool closed = vu32[own + 3] != kNone && error > v32[vu32[own + 3]];
    a32[out_row(token) + gl_WorkGroupID.x] = closed ? kClosed : v32[vu32[own + 2]] - error;
  }
}
