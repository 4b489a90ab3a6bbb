// out[t][c] = sum over j of weight[c][j] * input[t - (taps - 1) + j][c], through silu where kFunction is 1. With kPair the
// input is [B | C | X], what is summed B * X, and the result is multiplied by C (a short convolution). One invocation a channel,
// which walks the tokens; grid: channels in x. The cache binding has the last taps - 1 inputs, the oldest first.

layout(constant_id = SPEC_ROWS) const uint kChannels = 32;
layout(constant_id = SPEC_TAPS) const uint kTaps = 4;
layout(constant_id = SPEC_FUNCTION) const uint kFunction = 0;
layout(constant_id = SPEC_PAIR) const uint kPair = 0;
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;

#include "common/activation.glsl"
#include "common/order.glsl"

void main() {
  uint c = gl_WorkGroupID.x * kLocal + gl_LocalInvocationIndex;
  if (c >= kChannels)
    return;
  float weights[kTaps], window[kTaps];
  for (uint j = 0; j < kTaps; ++j)
    weights[j] = v32[push[PUSH_VECTOR] + c * kTaps + j];
  for (uint j = 0; j + 1 < kTaps; ++j)
    window[j] = kv32[j * kChannels + c];
  for (uint t = 0; t < token_count(); ++t) {
    uint row = input_row(t);
    window[kTaps - 1] = kPair != 0 ? a32[row + c] * a32[row + 2 * kChannels + c] : a32[row + c];
    float sum = 0.0;
    for (uint j = 0; j < kTaps; ++j)
      sum = fma(weights[j], window[j], sum);
    for (uint j = 0; j + 1 < kTaps; ++j)
      window[j] = window[j + 1];
    if (kFunction != 0)
      sum = times_logistic(sum, sum);
    if (kPair != 0)
      sum *= a32[row + kChannels + c];
    a32[out_row(t) + place_of(c, kOutOrder)] = sum;
  }
  for (uint j = 0; j + 1 < kTaps; ++j)
    kv32[j * kChannels + c] = window[j];
}
