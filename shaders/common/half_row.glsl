// Rows of activations in f16, times a power of two that brings the largest of a row near the end of what f16 holds: whatever
// the row's size, its values keep eleven bits and none overflows. Four values are kept as (0, 2), (1, 3), the order in which
// levels of weights, a byte each, become halves. A row of P values, the number of values rounded up to kHalfPadding, has P / 2
// words, then the factor that takes its values back.

const uint kHalfPadding = 128;

uint half_padded(uint count) { return (count + kHalfPadding - 1) / kHalfPadding * kHalfPadding; }

uvec2 half_words(vec4 x) { return uvec2(packHalf2x16(x.xz), packHalf2x16(x.yw)); }

// A power of two that takes `largest` to 2^14 or above, and less than 2^15; and what takes it back.
const uint kHalfExponent = 127 + 14;
uint half_exponent(float largest) { return clamp(floatBitsToUint(largest) >> 23, kHalfExponent - 126, 254u); }
float half_factor(float largest) { return uintBitsToFloat((127 + kHalfExponent - half_exponent(largest)) << 23); }
float half_inverse(float largest) { return uintBitsToFloat((127 + half_exponent(largest) - kHalfExponent) << 23); }
