// mxfp4 as in the file: codes of all rows, two a byte, then a scale a group of 32.

#include "bank/segments.glsl"
#include "codec/mxfp4_values.glsl"

uint bank_byte(uint segment, uint start, uint i) { return bank[segment].w[start + i / 4] >> (i % 4 * 8) & 255; }

void bank_group(uint segment, uint start, uint rows, uint groups, uint row, uint g, out vec4 w[8]) {
  float scale = e8m0(bank_byte(segment, start, rows * groups * 16 + row * groups + g));
  for (uint u = 0; u < 4; ++u) {
    uint codes = bank[segment].w[start + (row * groups + g) * 4 + u];
    w[2 * u] = vec4(e2m1(codes), e2m1(codes >> 4), e2m1(codes >> 8), e2m1(codes >> 12)) * scale;
    w[2 * u + 1] = vec4(e2m1(codes >> 16), e2m1(codes >> 20), e2m1(codes >> 24), e2m1(codes >> 28)) * scale;
  }
}
