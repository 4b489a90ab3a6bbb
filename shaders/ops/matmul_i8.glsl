// y = W x with activations in 8 bits: sums of integer products within what has one scale, then f32.

#include "common/product.glsl"
#include "common/product_i8.glsl"

void main() {
#ifdef CODEC_SETUP
  codec_setup();
#endif
  if (product_idle())
    return;
  product_begin();
  vec4 sums[kTeamValues];
  for (uint v = 0; v < kTeamValues; ++v)
    sums[v] = vec4(0.0);
  uint padded = q8_padded(kCols);
  if (kSum != 0) {
    // Lanes walk the groups of all chosen experts as one row.
    uint bases[kChoices];
    float shares[kChoices];
    for (uint c = 0; c < kChoices; ++c) {
      bases[c] = product_weight(0, c);
      shares[c] = product_share(c);
    }
    for (uint n = product_lane(); n < kChoices * kGroups; n += kLanes) {
      uint c = n / kGroups, g = n % kGroups;
      uint row = input_row(product_input(product_item(0), c));
      uint x[8];
      set_words(au128[row / 4 + q8_codes(g, 0)], au128[row / 4 + q8_codes(g, 1)], x);
      float scale = a32[row + padded * 8 + g];
      uint both = au32[row + padded * 9 + g];
      for (uint r = 0; r < kTeamRows; ++r) {
        uint q[8];
        vec2 s[kScales];
        group_levels(bases[c], product_row(r), g, q);
        group_scales(bases[c], product_row(r), g, s);
        sums[r].x = fma(add_group(q, s, x, scale, both, 0.0), shares[c], sums[r].x);
      }
    }
    product_finish(sums);
    return;
  }
  uint bases[kMatrices];
  for (uint m = 0; m < kMatrices; ++m)
    bases[m] = product_weight(m, 0);
  for (uint g = product_lane(); g < kGroups; g += kLanes)
    for (uint m = 0; m < kMatrices; ++m)
      for (uint r = 0; r < kTeamRows; ++r) {
        uint q[8];
        vec2 s[kScales];
        group_levels(bases[m], product_row(r), g, q);
        group_scales(bases[m], product_row(r), g, s);
        for (uint t = 0; t < kTokens; ++t) {
          uint row = input_row(product_input(product_item(t), 0));
          uint x[8];
          set_words(au128[row / 4 + q8_codes(g, 0)], au128[row / 4 + q8_codes(g, 1)], x);
          float scale = a32[row + padded * 8 + g];
          uint both = au32[row + padded * 9 + g];
          uint v = (m * kTeamRows + r) * kTokens + t;
          sums[v].x = add_group(q, s, x, scale, both, sums[v].x);
        }
      }
  product_finish(sums);
}
