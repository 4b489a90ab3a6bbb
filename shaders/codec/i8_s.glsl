// i8_s: an f32 scale for the tensor and signed bytes.
#include "codec/planes.glsl"

const uint kRowWords = (kCols + 3) / 4;

uint scale_plane(uint base) { return base; }
uint q_plane(uint base) { return scale_plane(base) + plane_units(64); }

#define CODEC_INTEGER
const int kZero = 0;
const uint kScales = 1;
const bool kMinimum = false;
const float kUnit = 1.0;

void group_levels(uint base, uint row, uint g, out uint q[8]) {
  uint first = row * kRowWords + 8 * g;
  if (kRowWords % 4 == 0) {
    set_words(w_u128(q_plane(base), first / 4), w_u128(q_plane(base), first / 4 + 1), q);
    return;
  }
  for (uint u = 0; u < 8; ++u)
    q[u] = w_u32(q_plane(base), first + u);
}

void group_scales(uint base, uint row, uint g, out vec2 s[kScales]) {
  s[0] = vec2(float_at(scale_plane(base), 0), 0.0);
}

#include "codec/float_levels.glsl"
