// q1t: an f16 scale and 32 base-3 digits a block of 32, and an overlay.
#include "codec/planes.glsl"

#include "codec/ternary.glsl"

uint d_plane(uint base) { return base; }
uint qs_plane(uint base) { return d_plane(base) + plane_units(kRows * kGroups * 2); }
uint qr_plane(uint base) { return qs_plane(base) + plane_units(kRows * kGroups * 4); }
uint end_plane(uint base) { return qr_plane(base) + plane_units(kRows * kGroups * 3); }

void tile_levels(uint base, uint row, uint g, out uint q[8]) {
  uint at = row * kGroups + g;
  for (uint k = 0; k < 5; ++k)
    q[k] = ternary_digits(w_u32(qs_plane(base), at), k);
  for (uint k = 0; k < 3; ++k) {
    uint rest = w_u8(qr_plane(base), at * 3 + k);
    q[5 + k] = 0;
    for (uint s = 0; s < 4; ++s)
      q[5 + k] |= ternary_digits(rest, s) << (8 * s);
  }
}

// The weights of the overlay: rows + 1 counts, then (column, f16) in the order of columns.
void decode_group(uint base, uint row, uint g, out vec4 w[8]) {
  uint q[8];
  tile_levels(base, row, g, q);
  float d = half_at(d_plane(base), row * kGroups + g);
  for (uint j = 0; j < 8; ++j) {
    vec4 level = bytes_to_float(q[j]) - 1.0;
    w[j] = mix(level * d, vec4(0.0), equal(level, vec4(0.0))); // 0 whatever the scale is
  }
  uint overlay = base + (end_plane(0) + 3) / 4 * 4;
  uint low = w_u32(overlay, row), end = w_u32(overlay, row + 1);
  for (uint high = end; low < high;) {
    uint middle = (low + high) / 2;
    if ((w_u32(overlay, kRows + 1 + middle) & 0xffffu) < 32 * g)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < end; ++low) {
    uint entry = w_u32(overlay, kRows + 1 + low);
    uint i = (entry & 0xffffu) - 32 * g;
    if (i >= 32)
      return;
    w[i / 4][i % 4] = unpackHalf2x16(entry >> 16).x;
  }
}
