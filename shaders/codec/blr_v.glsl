// blr_v: an f16 scale a row, one a column, and signs.
#include "codec/planes.glsl"

uint columns_plane(uint base) { return base; }
uint d_plane(uint base) { return columns_plane(base) + plane_units((kCols * 2 + 63) / 64 * 64); }
uint qs_plane(uint base) { return d_plane(base) + plane_units(kRows * 2); }

void row_levels(uint base, uint row, uint g, out uint q[8]) {
  for (uint u = 0; u < 8; ++u)
    q[u] = 0;
  add_bits(w_u32(qs_plane(base), row * kGroups + g), 1, q);
}

layout(constant_id = SPEC_COLUMN_SCALES) const uint kColumnScales = 1; // 0: the activations have them already

// The decode: what a plain row has, times the scale of each column.
void decode_group(uint base, uint row, uint g, out vec4 w[8]) {
  uint q[8];
  row_levels(base, row, g, q);
  float d = half_at(d_plane(base), row);
  for (uint j = 0; j < 8; ++j)
    for (uint c = 0; c < 4; ++c) {
      precise float v = (bytes_to_float(q[j])[c] - 1.0) * d;
      precise float scaled = kColumnScales != 0 ? v * half_at(columns_plane(base), min(32 * g + 4 * j + c, kCols - 1)) : v;
      w[j][c] = scaled;
    }
}
