// ptq1_0: an f16 scale and base-3 digits, five a byte, a block of 128.
#include "codec/planes.glsl"

#include "codec/ternary.glsl"

const uint kBlocks = kCols / 128;

uint d_plane(uint base) { return base; }
uint qs_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 2); }
uint qr_plane(uint base) { return qs_plane(base) + plane_units(kRows * kBlocks * 24); }

#define CODEC_INTEGER
const int kZero = 1;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint block = row * kBlocks + g / 4;
  for (uint k = 0; k < 8; ++k) {
    uint four = 8 * (g % 4) + k; // which four weights of the block
    if (four < 30) {
      q[k] = ternary_digits(w_u32(qs_plane(base), block * 6 + four / 5), four % 5);
      continue;
    }
    uint rest = w_u8(qr_plane(base), block * 2 + four - 30);
    q[k] = 0;
    for (uint s = 0; s < 4; ++s)
      q[k] |= ternary_digits(rest, s) << (8 * s);
  }
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  s[0] = vec2(half_at(d_plane(base), row * kBlocks + g / 4), 0.0);
}

#include "codec/float_levels.glsl"
