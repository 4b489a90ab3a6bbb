// fv5: two f32 magnitudes, and for each weight whether it is positive, negative and large, a block of 256.
#include "codec/planes.glsl"

const uint kBlocks = kCols / 256;

uint low_plane(uint base) { return base; }
uint high_plane(uint base) { return low_plane(base) + plane_units(kRows * kBlocks * 4); }
uint plus_plane(uint base) { return high_plane(base) + plane_units(kRows * kBlocks * 4); }
uint minus_plane(uint base) { return plus_plane(base) + plane_units(kRows * kBlocks * 32); }
uint select_plane(uint base) { return minus_plane(base) + plane_units(kRows * kBlocks * 32); }

void decode_group(uint base, uint row, uint g, out vec4 w[8]) {
  uint block = row * kBlocks + g / 8, at = row * kGroups + g;
  float low = float_at(low_plane(base), block), high = float_at(high_plane(base), block);
  uint plus = w_u32(plus_plane(base), at), minus = w_u32(minus_plane(base), at), select = w_u32(select_plane(base), at);
  for (uint s = 0; s < 8; ++s)
    for (uint j = 0; j < 4; ++j) {
      uint bit = 8 * j + s;
      w[s][j] = float(int(plus >> bit & 1) - int(minus >> bit & 1)) * ((select >> bit & 1) != 0 ? high : low);
    }
}
