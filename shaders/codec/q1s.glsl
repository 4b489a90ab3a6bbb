// q1s: an f16 scale and 32 signs a block of 32, and an overlay.
#include "codec/planes.glsl"

uint d_plane(uint base) { return base; }
uint qs_plane(uint base) { return d_plane(base) + plane_units(kRows * kGroups * 2); }
uint end_plane(uint base) { return qs_plane(base) + plane_units(kRows * kGroups * 4); }

const int kZero = 1;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  for (uint u = 0; u < 8; ++u)
    q[u] = 0;
  add_bits(w_u32(qs_plane(base), row * kGroups + g), 1, q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  s[0] = vec2(half_at(d_plane(base), row * kGroups + g), 0.0);
}

#define decode_group decode_levels
#include "codec/float_levels.glsl"
#undef decode_group

uint overlay_index(uint overlay, uint entry) {
  return w_u16(overlay, 2 + 3 * entry) | w_u16(overlay, 3 + 3 * entry) << 16;
}

// The weights of the overlay: their number, then (index in the tensor, f16) in the order of indices.
void decode_group(uint base, uint row, uint g, out vec4 w[8]) {
  decode_levels(base, row, g, w);
  uint overlay = base + (end_plane(0) + 3) / 4 * 4;
  uint first = row * kCols + 32 * g;
  uint low = 0, end = w_u32(overlay, 0);
  for (uint high = end; low < high;) {
    uint middle = (low + high) / 2;
    if (overlay_index(overlay, middle) < first)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < end; ++low) {
    uint i = overlay_index(overlay, low) - first;
    if (i >= 32)
      return;
    w[i / 4][i % 4] = half_at(overlay, 4 + 3 * low);
  }
}
