// y = W x with activations in 8 bits: sums of integer products within what has one scale, then f32.

#include "common/product.glsl"
#include "common/product_i8.glsl"

void main() {
#ifdef CODEC_SETUP
  codec_setup();
#endif
  if (product_idle())
    return;
  product_route();
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
            uint row = input_row(product_input(product_item(t), c));
            uint x[8];
            set_words(au128[row / 4 + q8_codes(g, 0)], au128[row / 4 + q8_codes(g, 1)], x);
            float scale = a32[row + padded * 8 + g];
            uint both = au32[row + padded * 9 + g];
            uint v = (m * kTeamRows + r) * kTokens + t;
            sums[v].x = add_group(q, s, x, scale, both, sums[v].x);
          }
        }
    if (kSum != 0)
      for (uint v = 0; v < kTeamValues; ++v)
        sums[v] = fma(sums[v], vec4(product_share(c)), before[v]);
  }
  product_finish(sums);
}
