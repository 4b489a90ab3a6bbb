// Reading a weight in the layout kPlanes (formats/layout/planes.h). A decoder is given `base`, the weight's first 16 bytes
// in the bound range; planes and rows are functions of the shape.
//
// A codec's include defines
//   void group_levels(uint base, uint row, uint g, out uint q[8]): the integer levels of weights 32 g.. of a row, four
//     signed bytes a word, each kZero too high;
//   kUnit, what a level counts, mostly 1;
//   kScales, 1, 2 or 4 scales a group, each for neighbouring weights;
//   void group_scales(uint base, uint row, uint g, out vec2 s[kScales]): (scale, minimum); weight = scale * (level * kUnit) - minimum;
// and is an integer codec then (CODEC_INTEGER). Or it defines decode_group() itself. codec_setup() is called by all
// invocations before anything is decoded (CODEC_SETUP).

layout(constant_id = SPEC_ROWS) const uint kRows = 1;
layout(constant_id = SPEC_COLS) const uint kCols = 32;

const uint kGroups = (kCols + 31) / 32;

// Bytes in units of 16, rounded up: what a plane takes.
uint plane_units(uint bytes) { return (bytes + 15) / 16; }

uint w_u32(uint base, uint i) { return w32[base * 4 + i]; }
uint w_u16(uint base, uint i) { return (w32[base * 4 + (i >> 1)] >> ((i & 1) * 16)) & 0xffffu; }
uint w_u8(uint base, uint i) { return (w32[base * 4 + (i >> 2)] >> ((i & 3) * 8)) & 0xffu; }
uvec4 w_u128(uint base, uint i) { return w128[base + i]; }
float half_at(uint base, uint i) { return unpackHalf2x16(w_u16(base, i)).x; }
float float_at(uint base, uint i) { return uintBitsToFloat(w_u32(base, i)); }

// Four signed bytes as floats.
vec4 bytes_to_float(uint q) {
  int i = int(q);
  return vec4(bitfieldExtract(i, 0, 8), bitfieldExtract(i, 8, 8), bitfieldExtract(i, 16, 8), bitfieldExtract(i, 24, 8));
}

// 16 bytes of nibbles: word u has weights 4 u.. in the low ones and 16 + 4 u.. in the high ones.
void halves(uvec4 n, out uint q[8]) {
  for (uint u = 0; u < 4; ++u) {
    q[u] = n[u] & 0x0f0f0f0fu;
    q[4 + u] = (n[u] >> 4) & 0x0f0f0f0fu;
  }
}

// Two words of two-bit codes: weight 16 u + 4 s + j at bits 8 j + 2 s of word u.
void pairs(uint lo, uint hi, out uint q[8]) {
  for (uint s = 0; s < 4; ++s) {
    q[s] = (lo >> (2 * s)) & 0x03030303u;
    q[4 + s] = (hi >> (2 * s)) & 0x03030303u;
  }
}

// Adds bits of a word, weight 4 s + j at bit 8 j + s, at bit `to` of each level.
void add_bits(uint bits, uint to, inout uint q[8]) {
  for (uint s = 0; s < 8; ++s)
    q[s] |= ((bits >> s) & 0x01010101u) << to;
}

void set_words(uvec4 near, uvec4 far, out uint q[8]) {
  for (uint u = 0; u < 4; ++u) {
    q[u] = near[u];
    q[4 + u] = far[u];
  }
}
