// The sum of all tokens' rows, column by column, as two floats: the sum, and what rounding took from it. One invocation a column;
// grid: columns in x. PUSH_OUT: the sums among the results, behind them the rest.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;

void main() {
  uint i = gl_WorkGroupID.x * kLocal + gl_LocalInvocationIndex;
  if (i >= kCount)
    return;
  precise float sum = 0.0;
  precise float rest = 0.0;
  for (uint t = 0; t < token_count(); ++t) {
    precise float x = a32[input_row(first_token() + t) + i];
    precise float next = sum + x;
    precise float taken = next - sum;
    rest += (sum - (next - taken)) + (x - taken);
    sum = next;
  }
  results[push[PUSH_OUT] + i] = floatBitsToUint(sum);
  results[push[PUSH_OUT] + kCount + i] = floatBitsToUint(rest);
}
