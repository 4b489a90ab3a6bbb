// The choice of experts for every token. One workgroup a token; grid: tokens in z. PUSH_INPUT: logits, PUSH_OUT: the choice,
// PUSH_VECTOR: bias, PUSH_VECTOR2: scales.

layout(constant_id = SPEC_EXPERTS) const uint kExperts = 2;

#include "common/group_sum.glsl"
#include "common/route.glsl"

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  choose_experts(input_row(token), push[PUSH_VECTOR]);
  weigh_experts(input_row(token), push[PUSH_VECTOR], push[PUSH_VECTOR2]);
  leave_choice(out_row(token));
}
