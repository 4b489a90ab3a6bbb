// Codebooks (formats/layout/codebook.h): kGridWords words in front of a tensor's planes, brought into shared memory
// first.

#define CODEC_SETUP

shared uint grid_words[kGridWords];

void codec_setup() {
  for (uint i = gl_LocalInvocationIndex; i < kGridWords; i += kLocal)
    grid_words[i] = w_u32(push[PUSH_WEIGHT], i);
  barrier();
}

uint grid_entry(uint i) { return grid_words[i / 2] >> (i % 2 * 16) & 0xffffu; }

// Four codes of two (three) bits as bytes.
uint spread_pairs(uint codes) {
  uint two = (codes | codes << 12) & 0x000f000fu;
  return (two | two << 6) & 0x03030303u;
}
uint spread_triples(uint codes) {
  return (codes & 7) | (codes & 0x38) << 5 | (codes & 0x1c0) << 10 | (codes & 0xe00) << 15;
}

// The eight magnitudes 8, 25 or 43 of an entry of iq2.
void iq2_magnitudes(uint entry, out uint near, out uint far) {
  uint a = spread_pairs(entry & 255), b = spread_pairs(entry >> 8);
  near = 0x08080808u + a * 17 + (a >> 1 & 0x01010101u);
  far = 0x08080808u + b * 17 + (b >> 1 & 0x01010101u);
}

// Magnitudes, none of which is 0, with the signs that four bits name.
uint with_signs(uint magnitudes, uint bits) {
  uint ones = (bits & 15) * 0x00204081u & 0x01010101u;
  return (magnitudes ^ ones * 255) + ones;
}

// The eight signs of a seven-bit index: the last makes their number even.
uint even_signs(uint index) { return index | (bitCount(index) & 1) << 7; }
