// Rounding to f16 and back, ties to even, which packHalf2x16 leaves to the device.

float rounded_to_half(float x) {
  float size = abs(x);
  if (size < 6.103515625e-5) // no normal number any more: steps of 2^-24
    return roundEven(x * 16777216.0) / 16777216.0;
  if (size >= 65520.0)
    return isnan(x) ? x : uintBitsToFloat(floatBitsToUint(x) & 0x80000000u | 0x7f800000u);
  uint bits = floatBitsToUint(x);
  return uintBitsToFloat(bits + 0xfffu + (bits >> 13 & 1u) & ~0x1fffu);
}
