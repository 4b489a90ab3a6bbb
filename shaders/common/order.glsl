// Orders of activations. In the natural one value i stands at i. In lane order, which matrices read, groups of 32 values
// are woven: vec4 j of group g stands at vec4 (g / 32 * 8 + j) * 32 + g % 32, so that lanes that take neighbouring groups
// read neighbouring 16 bytes.

const uint kOrderNatural = 0;
const uint kOrderLanes = 1;

// vec4 0 of group g; vec4 j stands 32 j further.
uint lane_group(uint g) { return (g / 32) * 256 + g % 32; }

uint place_of(uint i, uint order) {
  return order == kOrderNatural ? i : (lane_group(i / 32) + (i % 32) / 4 * 32) * 4 + i % 4;
}
