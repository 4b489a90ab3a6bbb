// What all kinds of attention are specialised by.

layout(constant_id = SPEC_SCALE) const float kScale = 1.0;
layout(constant_id = SPEC_WINDOW) const uint kWindow = 0;
layout(constant_id = SPEC_SOFTCAP) const float kSoftcap = 0.0;
layout(constant_id = SPEC_SINKS) const uint kSinks = 0;
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;
layout(constant_id = SPEC_QUANT_OUT) const uint kQuantOut = 0; // 1: in 8 bits; values a head are whole groups of 32

// The first position that a token sees.
uint first_position(uint token) {
  uint end = token_position(token) + 1;
  return kWindow != 0 && end > kWindow ? end - kWindow : 0;
}
