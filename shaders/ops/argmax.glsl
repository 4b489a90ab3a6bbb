// The place of the largest of kCount values, the lowest of equal ones, for the host. One workgroup a token of the head; grid:
// tokens in z.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;

#include "common/best.glsl"

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint row = input_row(first_token() + gl_WorkGroupID.z);
  float value = kLeast;
  uint place = kCount;
  for (uint i = local_index(); i < kCount; i += kLocal) {
    float x = isnan(a32[row + i]) ? kLeast : a32[row + i];
    if (better(x, i, value, place)) {
      value = x;
      place = i;
    }
  }
  group_best(value, place);
  if (local_index() == 0)
    results[RESULT_IDS + gl_WorkGroupID.z] = place;
}
