// stq1_0: an f16 scale and patterns of four ternary levels, of which one is 0, a block of 256.
#include "codec/planes.glsl"

const uint kBlocks = kCols / 256;

uint d_plane(uint base) { return base; }
uint slots_plane(uint base) { return d_plane(base) + plane_units(kRows * kBlocks * 2); }
uint signs_plane(uint base) { return slots_plane(base) + plane_units(kRows * kBlocks * 32); }

#define CODEC_INTEGER
const int kZero = 1;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

// The levels of slot i with sign s: byte 16 s + i, two bits a level.
uint pattern(uint i) {
  const uint table[8] = uint[8](0x092989a9u, 0x062686a6u, 0x121a929au, 0x424a626au, 0xa1812101u, 0xa4842404u, 0x98901810u,
                                0x68604840u);
  return table[i / 4] >> (8 * (i % 4)) & 255;
}

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint block = row * kBlocks + g / 8, sub = g % 8;
  for (uint k = 0; k < 8; ++k) {
    uint first = sub / 2 * 16 + 4 * (k % 4); // the patterns that have these four weights
    uint p = 2 * (sub % 2) + k / 4;          // as their level p
    uint slots = w_u32(slots_plane(base), block * 8 + first / 8) >> (first % 8) & 0x0f0f0f0fu;
    uint signs = w_u32(signs_plane(base), block * 2 + first / 32) >> (first % 32 / 4) & 0x01010101u;
    q[k] = 0;
    for (uint j = 0; j < 32; j += 8)
      q[k] |= (pattern((signs >> j & 1) * 16 + (slots >> j & 15)) >> (2 * p) & 3) << j;
  }
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  s[0] = vec2(half_at(d_plane(base), row * kBlocks + g / 8), 0.0);
}

#include "codec/float_levels.glsl"
