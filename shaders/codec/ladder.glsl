// What q2tp, q2tp_affine and q4tp have in common: their planes, and scales that are rungs of a ladder a row, chosen by codes of
// five bits, six of them in a word.
#include "codec/planes.glsl"

uint lo_plane(uint base) { return base; }
uint step_plane(uint base) { return lo_plane(base) + plane_units(kRows * 4); }
uint codes_plane(uint base) { return step_plane(base) + plane_units(kRows * 4); }
uint qs_plane(uint base) { return codes_plane(base) + plane_units(kRows * ((kGroups + 5) / 6) * 4); }

const uint kCodeWords = (kGroups + 5) / 6;

// Rung c of a row's ladder: the product of the one before with the step, rounded each time.
float rung(uint base, uint row, uint c) {
  float step = float_at(step_plane(base), row);
  float scale = float_at(lo_plane(base), row);
  for (uint i = 0; i < c; ++i) {
    precise float next = scale * step;
    scale = next;
  }
  return scale;
}

uint rung_code(uint base, uint row, uint g) {
  return w_u32(codes_plane(base), row * kCodeWords + g / 6) >> (5 * (g % 6)) & 31;
}
