// q4tp: nibbles in blocks of 32, whose scales are rungs of a ladder a row.
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

#define CODEC_INTEGER
const int kZero = 8;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  halves(w_u128(qs_plane(base), row * kGroups + g), q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  s[0] = vec2(rung(base, row, rung_code(base, row, g)), 0.0);
}

#include "codec/float_levels.glsl"
