// Values of OCP MX FP4, exact by construction of their bits.

// E2M1 in the low four bits: sign, then 0, 0.5, 1, 1.5, 2, 3, 4, 6.
float e2m1(uint code) {
  uint m = code & 7;
  uint bits = m < 2 ? m * 0x3f000000u : ((m >> 1) + 126) << 23 | (m & 1) << 22;
  return uintBitsToFloat(bits | (code & 8) << 28);
}

// E8M0: 2^(k - 127), of which k = 0 is subnormal; k = 255 is NaN.
float e8m0(uint k) { return uintBitsToFloat(k == 0 ? 0x00400000u : (k == 255 ? 0x7fc00000u : k << 23)); }
// Half of it, as ggml has it for levels that are twice the values: k = 255 is a number there.
float e8m0_half(uint k) { return uintBitsToFloat(k < 2 ? 0x00200000u << k : (k - 1) << 23); }
