// The place of the largest of kCount values, the lowest of equal ones, for the host. One workgroup a token of the head; grid:
// tokens in z. Where there are many values kParts workgroups in x leave (value, place) of a part each, and a second dispatch with
// kParts of those for each token chooses.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;
layout(constant_id = SPEC_SHARES) const uint kParts = 1;
layout(constant_id = SPEC_SUM) const uint kJoin = 0; // 1: the input are parts

#include "common/best.glsl"

const uint kEach = (kCount + kParts - 1) / kParts;

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint row = input_row(first_token() + gl_WorkGroupID.z);
  float value = kLeast;
  uint place = kCount;
  if (kJoin != 0) {
    for (uint i = local_index(); i < kParts; i += kLocal)
      if (better(a32[row + 2 * i], au32[row + 2 * i + 1], value, place)) {
        value = a32[row + 2 * i];
        place = au32[row + 2 * i + 1];
      }
  } else {
    uint first = gl_WorkGroupID.x * kEach;
    for (uint i = first + local_index(); i < min(first + kEach, kCount); i += kLocal) {
      float x = isnan(a32[row + i]) ? kLeast : a32[row + i];
      if (better(x, i, value, place)) {
        value = x;
        place = i;
      }
    }
  }
  group_best(value, place);
  if (local_index() != 0)
    return;
  if (kJoin != 0 || kParts == 1) {
    results[RESULT_IDS + gl_WorkGroupID.z] = place;
  } else {
    uint at = out_row(first_token() + gl_WorkGroupID.z) + 2 * gl_WorkGroupID.x;
    a32[at] = value;
    au32[at + 1] = place;
  }
}
