// MXFP4 as in a GGUF file: blocks of 17 bytes, a scale and then the codes of 32 values, those of the second half in the high nibbles.

#include "bank/segments.glsl"
#include "codec/mxfp4_values.glsl"

void bank_group(uint segment, uint start, uint rows, uint groups, uint row, uint g, out vec4 w[8]) {
  uint at = (row * groups + g) * 17, shift = (at + 1) % 4 * 8;
  float scale = e8m0_half(bank[segment].w[start + at / 4] >> (at % 4 * 8) & 255);
  for (uint u = 0; u < 4; ++u) {
    uint word = start + (at + 1) / 4 + u, codes = bank[segment].w[word] >> shift;
    if (shift != 0)
      codes |= bank[segment].w[word + 1] << (32 - shift);
    for (uint h = 0; h < 2; ++h)
      w[4 * h + u] = 2.0 * vec4(e2m1(codes >> 4 * h), e2m1(codes >> (8 + 4 * h)), e2m1(codes >> (16 + 4 * h)), e2m1(codes >> (24 + 4 * h))) * scale;
  }
}
