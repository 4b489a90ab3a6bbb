// A group of 32 weights times 32 activations in 8 bits.

#include "common/dot4.glsl"

// Sum of the codes that scale `s` of a group applies to.
int code_sum(uint both, uint s, uint x[8]) {
  int near = bitfieldExtract(int(both), 0, 16), far = int(both) >> 16;
  if (kScales == 1)
    return near + far;
  if (kScales == 2)
    return s == 0 ? near : far;
  return dot4(x[2 * s], 0x01010101u) + dot4(x[2 * s + 1], 0x01010101u);
}

// `sum` and what a scale s applies to, `exact` being the sum of levels times activations of scale `scale`, `codes` that of the
// activations. Each step is rounded as it is written: of two products that are added a compiler may choose which one is
// rounded first, and it has to be the same in all shaders.
float add_scaled(int exact, int codes, int zero, vec2 s, float scale, float sum) {
  precise float value = float(exact - zero * codes) * (s.x * kUnit);
  if (kMinimum)
    value = fma(float(-codes), s.y, value);
  precise float next = fma(value, scale, sum);
  return next;
}

// `sum` and the group's product. q and s are the group's levels and scales; x, scale and both the activations' codes, their
// scale and their sums.
float add_group(uint q[8], vec2 s[kScales], uint x[8], float scale, uint both, float sum) {
  const uint each = 8 / kScales;
  for (uint i = 0; i < kScales; ++i) {
    int exact = 0;
    for (uint k = i * each; k < (i + 1) * each; ++k)
      exact += dot4(q[k], x[k]);
    sum = add_scaled(exact, kZero != 0 || kMinimum ? code_sum(both, i, x) : 0, kZero, s[i], scale, sum);
  }
  return sum;
}
