// out = [input head | aux head] for each head; with kShared one head of the input serves all. One invocation a value; grid:
// values in x, tokens in z. All natural.

layout(constant_id = SPEC_ROWS) const uint kFirst = 32;  // values of a head of the input
layout(constant_id = SPEC_COLS) const uint kSecond = 32; // of aux
layout(constant_id = SPEC_HEADS) const uint kHeads = 1;
layout(constant_id = SPEC_SHARED) const uint kShared = 0;

void main() {
  uint i = gl_WorkGroupID.x * kLocal + gl_LocalInvocationIndex;
  if (i >= kHeads * (kFirst + kSecond) || gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  uint head = i / (kFirst + kSecond), at = i % (kFirst + kSecond);
  a32[out_row(token) + i] = at < kFirst ? a32[input_row(token) + (kShared != 0 ? 0 : head * kFirst) + at]
                                        : a32[aux_row(token) + head * kSecond + at - kFirst];
}
