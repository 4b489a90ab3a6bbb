// y = W x with activations in f32, in lane order.

#include "common/product.glsl"

// The last group of rows that are not whole groups: what lies behind the row's end counts nothing.
void cut_tail(uint g, inout vec4 w[8]) {
  for (uint j = 0; j < 8; ++j)
    for (uint c = 0; c < 4; ++c)
      if (32 * g + 4 * j + c >= kCols)
        w[j][c] = 0.0;
}

void load_input(uint token, uint g, bool cut, out vec4 x[8]) {
  uint at = input_row(token) / 4 + lane_group(g);
  for (uint j = 0; j < 8; ++j)
    x[j] = a128[at + 32 * j];
  if (cut)
    cut_tail(g, x);
}

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
      bool cut = kCols % 32 != 0 && g + 1 == kGroups;
      vec4 w[8];
      vec4 x[8];
      load_input(product_input(product_item(0), c), g, cut, x);
      for (uint r = 0; r < kTeamRows; ++r) {
        decode_group(bases[c], product_row(r), g, w);
        if (cut)
          cut_tail(g, w);
        vec4 part = vec4(0.0);
        for (uint j = 0; j < 8; ++j)
          part = fma(w[j], x[j], part);
        sums[r] = fma(part, vec4(shares[c]), sums[r]);
      }
    }
    product_finish(sums);
    return;
  }
  uint bases[kMatrices];
  for (uint m = 0; m < kMatrices; ++m)
    bases[m] = product_weight(m, 0);
  for (uint g = product_lane(); g < kGroups; g += kLanes) {
    bool cut = kCols % 32 != 0 && g + 1 == kGroups;
    vec4 w[8];
    vec4 x[8];
    if (kTokens == 1)
      load_input(product_input(product_item(0), 0), g, cut, x);
    for (uint m = 0; m < kMatrices; ++m)
      for (uint r = 0; r < kTeamRows; ++r) {
        decode_group(bases[m], product_row(r), g, w);
        if (cut)
          cut_tail(g, w);
        for (uint t = 0; t < kTokens; ++t) {
          if (kTokens > 1)
            load_input(product_input(product_item(t), 0), g, cut, x);
          uint v = (m * kTeamRows + r) * kTokens + t;
          for (uint j = 0; j < 8; ++j)
            sums[v] = fma(w[j], x[j], sums[v]);
        }
      }
  }
  product_finish(sums);
}
