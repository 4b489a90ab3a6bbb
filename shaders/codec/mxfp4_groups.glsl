// Groups of four-bit floats behind a plane of exponents, as integer levels. Before it: kFp4Zero, fp4_levels() (levels16), kUnit, the weight of a
// level, and block_scale(), what an exponent stands for.
uint e_plane(uint base) { return base; }
uint qs_plane(uint base) { return e_plane(base) + plane_units(kRows * kGroups); }

#define CODEC_INTEGER
const int kZero = kFp4Zero;
const uint kScales = 1;
const bool kMinimum = false;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  fp4_levels(w_u128(qs_plane(base), row * kGroups + g), q);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  s[0] = vec2(block_scale(w_u8(e_plane(base), row * kGroups + g)), 0.0);
}

#define CODEC_FETCH
const uint kFetched = 1;
void group_fetch(uint base, uint row, uint g, out uvec4 codes[kFetched], out uint scales) {
  codes[0] = w_u128(qs_plane(base), row * kGroups + g);
  scales = w_u8(e_plane(base), row * kGroups + g);
}
void group_fetched(uvec4 codes[kFetched], uint scales, out uint q[8], out vec2 s[kScales]) {
  fp4_levels(codes[0], q);
  s[0] = vec2(block_scale(scales), 0.0);
}
