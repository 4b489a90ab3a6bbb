// q4_k: blocks of 256 in eight groups, each with scale and minimum of six bits.
#include "codec/planes.glsl"

const uint kBlocks = kCols / 256;

uint d_plane(uint base) { return base; }
uint dmin_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 2); }
uint scales_plane(uint base) { return dmin_plane(base) + plane_units(kRows * kBlocks * 2); }
uint qs_plane(uint base) { return scales_plane(base) + plane_units(kRows * kBlocks * 12); }

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 1;
const bool kMinimum = true;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint block = row * kBlocks + g / 8, sub = g % 8;
  uint codes = block * 8 + sub / 2 * 2, shift = sub % 2 * 4;
  set_words(w_u128(qs_plane(base), codes) >> shift & 0x0f0f0f0fu, w_u128(qs_plane(base), codes + 1) >> shift & 0x0f0f0f0fu,
            q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  uint block = row * kBlocks + g / 8, sub = g % 8;
  uint low = w_u32(scales_plane(base), block * 3), mid = w_u32(scales_plane(base), block * 3 + 1);
  uint high = w_u32(scales_plane(base), block * 3 + 2);
  uint shift = 8 * (sub % 4);
  uint scale = sub < 4 ? (low >> shift) & 63 : ((high >> shift) & 15) | ((low >> (shift + 6)) & 3) << 4;
  uint minimum = sub < 4 ? (mid >> shift) & 63 : ((high >> (shift + 4)) & 15) | ((mid >> (shift + 6)) & 3) << 4;
  s[0] = vec2(half_at(d_plane(base), block) * float(scale), half_at(dmin_plane(base), block) * float(minimum));
}

#include "codec/float_levels.glsl"
