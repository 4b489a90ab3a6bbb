// y = W x with activations in 8 bits: sums of integer products within what has one scale, then f32.

#include "common/dot4.glsl"
#include "common/product.glsl"

// Sum of the codes that scale `s` of a group applies to.
int code_sum(uint both, uint s, uint x[8]) {
  int near = bitfieldExtract(int(both), 0, 16), far = int(both) >> 16;
  if (kScales == 1)
    return near + far;
  if (kScales == 2)
    return s == 0 ? near : far;
  return dot4(x[2 * s], 0x01010101u) + dot4(x[2 * s + 1], 0x01010101u);
}

void main() {
#ifdef CODEC_SETUP
  codec_setup();
#endif
  if (product_idle())
    return;
  const uint each = 8 / kScales;
  vec4 sums[kTeamValues];
  for (uint v = 0; v < kTeamValues; ++v)
    sums[v] = vec4(0.0);
  uint padded = q8_padded(kCols);
  for (uint c = 0; c < kChoices; ++c) {
    uint bases[kMatrices];
    for (uint m = 0; m < kMatrices; ++m)
      bases[m] = product_weight(m, c);
    vec4 before[kTeamValues];
    if (kSum != 0) // each expert's products by themselves
      for (uint v = 0; v < kTeamValues; ++v) {
        before[v] = sums[v];
        sums[v] = vec4(0.0);
      }
    for (uint g = product_lane(); g < kGroups; g += kLanes)
      for (uint m = 0; m < kMatrices; ++m)
        for (uint r = 0; r < kTeamRows; ++r) {
          uint q[8];
          vec2 s[kScales];
          group_levels(bases[m], product_row(r), g, q);
          group_scales(bases[m], product_row(r), g, s);
          for (uint t = 0; t < kTokens; ++t) {
            uint row = input_row(product_input(product_token() + t, c));
            uint x[8];
            set_words(au128[row / 4 + q8_codes(g, 0)], au128[row / 4 + q8_codes(g, 1)], x);
            float scale = a32[row + padded * 8 + g];
            uint both = au32[row + padded * 9 + g];
            uint v = (m * kTeamRows + r) * kTokens + t;
            for (uint i = 0; i < kScales; ++i) {
              int sum = 0;
              for (uint k = i * each; k < (i + 1) * each; ++k)
                sum += dot4(q[k], x[k]);
              int codes = kZero != 0 || kMinimum ? code_sum(both, i, x) : 0;
              float value = float(sum - kZero * codes) * (s[i].x * kUnit);
              if (kMinimum)
                value = fma(float(-codes), s[i].y, value);
              sums[v].x = fma(value, scale, sums[v].x);
            }
          }
        }
    if (kSum != 0)
      for (uint v = 0; v < kTeamValues; ++v)
        sums[v] = fma(sums[v], vec4(product_share(c)), before[v]);
  }
  product_finish(sums);
}
