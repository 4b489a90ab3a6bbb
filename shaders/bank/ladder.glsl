// q4tp and q2tp as in the file: codes of all rows, then f16 exponents of a row's first rung and of its step, then rungs in
// five bits each, the bytes of a row whole. BANK_BITS says which: 4 bits a code with levels of -8 to 7, or 2 bits with
// -1.5 to 1.5, of which rung 0 is 0.

#include "bank/segments.glsl"

uint bank_byte(uint segment, uint start, uint i) { return bank[segment].w[start + i / 4] >> (i % 4 * 8) & 255; }

float bank_scale(uint segment, uint start, uint rows, uint groups, uint row, uint g) {
  uint params = rows * groups * 4 * BANK_BITS + row * 4; // in bytes, a multiple of 4
  vec2 exponents = unpackHalf2x16(bank[segment].w[start + params / 4]);
  uint stride = (5 * groups + 7) / 8;
  uint codes = rows * (groups * 4 * BANK_BITS + 4) + row * stride, byte = 5 * g / 8;
  uint both = bank_byte(segment, start, codes + byte);
  if (byte + 1 < stride)
    both |= bank_byte(segment, start, codes + byte + 1) << 8;
  uint rung = both >> (5 * g % 8) & 31;
  if (BANK_BITS == 2 && rung == 0)
    return 0.0;
  float scale = exp2(exponents.x), step = exp2(exponents.y);
  for (uint i = BANK_BITS == 2 ? 1 : 0; i < rung; ++i)
    scale *= step;
  return scale;
}

void bank_group(uint segment, uint start, uint rows, uint groups, uint row, uint g, out vec4 w[8]) {
  float scale = bank_scale(segment, start, rows, groups, row, g);
  const float zero = BANK_BITS == 4 ? 8.0 : 1.5;
  const uint each = 32 / BANK_BITS; // codes a word
  for (uint j = 0; j < 8; ++j) {
    uint codes = bank[segment].w[start + (row * groups + g) * BANK_BITS + 4 * j / each] >> (4 * j % each * BANK_BITS);
    for (uint c = 0; c < 4; ++c)
      w[j][c] = (float(codes >> (c * BANK_BITS) & ((1u << BANK_BITS) - 1)) - zero) * scale;
  }
}
