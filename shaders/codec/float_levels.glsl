// The decode of integer codecs to floats, in the order of operations of the reference.

void decode_group(uint base, uint row, uint g, out vec4 w[8]) {
  uint q[8];
  vec2 s[kScales];
  group_levels(base, row, g, q);
  group_scales(base, row, g, s);
  const uint each = 8 / kScales;
  for (uint j = 0; j < 8; ++j) {
    precise vec4 v = s[j / each].x * ((bytes_to_float(q[j]) - float(kZero)) * kUnit);
    if (kMinimum) {
      precise vec4 m = v - s[j / each].y;
      v = m;
    }
    w[j] = v;
  }
}
