// main() of products whose lanes each walk groups of 32 weights: of one matrix or a pair, for the tokens of a workgroup, or,
// with kSum, of all experts that a token chose, as one row. The file that includes this one says how a group counts, in
// macros, `g` being its number:
//   WALK_BEGIN                  what is the same for all groups
//   WALK_GROUP                  names for a group
//   WALK_INPUT(item)            reads an item's activations
//   WALK_ONE_INPUT, WALK_EACH_INPUT   the same for the only item, once a group, or for item t of several, once a row
//   WALK_WEIGHTS(base, row)     reads a row's weights
//   WALK_ADD(sum)               adds their product
//   WALK_ADD_SHARE(sum, share)  adds it times an expert's weight

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
  WALK_BEGIN
  if (kSum != 0) {
    uint bases[kChoices];
    float shares[kChoices];
    for (uint c = 0; c < kChoices; ++c) {
      bases[c] = product_weight(0, c);
      shares[c] = product_share(c);
    }
    for (uint n = product_lane(); n < kChoices * kGroups; n += kLanes) {
      uint c = n / kGroups, g = n % kGroups;
      WALK_GROUP
      WALK_INPUT(product_input(product_item(0), c))
      for (uint r = 0; r < kTeamRows; ++r) {
        WALK_WEIGHTS(bases[c], product_row(r))
        WALK_ADD_SHARE(sums[r], shares[c])
      }
    }
    product_finish(sums);
    return;
  }
  uint bases[kMatrices];
  for (uint m = 0; m < kMatrices; ++m)
    bases[m] = product_weight(m, 0);
  for (uint g = product_lane(); g < kGroups; g += kLanes) {
    WALK_GROUP
    WALK_ONE_INPUT
    for (uint m = 0; m < kMatrices; ++m)
      for (uint r = 0; r < kTeamRows; ++r) {
        WALK_WEIGHTS(bases[m], product_row(r))
        for (uint t = 0; t < kTokens; ++t) {
          WALK_EACH_INPUT
          uint v = (m * kTeamRows + r) * kTokens + t;
          WALK_ADD(sums[v])
        }
      }
  }
  product_finish(sums);
}
