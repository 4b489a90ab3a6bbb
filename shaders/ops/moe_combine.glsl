// out = residual + (sum over a token's choices of weight * the pair's row, + shared row * its gate). One invocation a value;
// grid: values in x, tokens in z. Input: rows of pairs (with kPlain
// PUSH_VECTOR rows of two, which are added as they are); aux: residual; third: shared row; PUSH_ROUTES: what moe_route left.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;
layout(constant_id = SPEC_EXPERTS) const uint kExperts = 2;
layout(constant_id = SPEC_RESIDUAL) const uint kResidual = 0;
layout(constant_id = SPEC_SUM) const uint kPlain = 0;
layout(constant_id = SPEC_SHARED) const uint kShared = 0;

void main() {
  uint i = gl_WorkGroupID.x * kLocal + gl_LocalInvocationIndex;
  if (i >= kCount || gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint routes = push[PUSH_ROUTES] + token * 2 * kExperts;
  float sum = 0.0;
  uint rows = kPlain != 0 ? push[PUSH_VECTOR] : kExperts;
  for (uint c = 0; c < rows; ++c)
    sum = fma(kPlain != 0 ? 1.0 : a32[routes + kExperts + c], a32[input_row(token * kExperts + c) + i], sum);
  if (kShared != 0) {
    float gate = kShared == 2 ? 1.0 / (1.0 + exp(-a32[row_at(PUSH_GATE, PUSH_GATE_STRIDE, token)])) : 1.0;
    sum = fma(gate, a32[third_row(token) + i], sum);
  }
  if (kResidual != 0)
    sum += a32[aux_row(token) + i];
  a32[out_row(token) + i] = sum;
}
