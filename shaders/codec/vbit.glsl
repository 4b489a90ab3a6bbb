// vbit: for each row the word with which its codes begin, and its bits a code; an f16 scale a group; the codes, the first one in a
// word's highest bits. A group has as many words as a code has bits.
#include "codec/planes.glsl"

uint d_plane(uint base) { return base + plane_units(kRows * 8); }
uint q_plane(uint base) { return d_plane(base) + plane_units(kRows * kGroups * 2); }

#define CODEC_INTEGER
const int kZero = -1; // of eight bits a level would be 128 else
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint bits = w_u32(base, 2 * row + 1);
  uint first = w_u32(base, 2 * row) + g * bits;
  for (uint u = 0; u < 8; ++u) {
    q[u] = 0;
    for (uint c = 0; c < 4; ++c) {
      uint at = (4 * u + c) * bits, word = first + at / 32, held = 32 - at % 32;
      uint near = w_u32(q_plane(base), word);
      uint code = held >= bits ? near >> (held - bits) : near << (bits - held) | w_u32(q_plane(base), word + 1) >> (32 + held - bits);
      code = (code & ((1u << bits) - 1)) - (1u << (bits - 1));
      q[u] |= (code & 255u) << (8 * c);
    }
  }
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  s[0] = vec2(half_at(d_plane(base), row * kGroups + g), 0.0);
}

#include "codec/float_levels.glsl"
