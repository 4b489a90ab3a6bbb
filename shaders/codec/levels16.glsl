// Tables of sixteen levels, four codes a word at a time.

// A byte a code, from four words of four levels each.
uint look_up(uint codes, uint a, uint b, uint c, uint d) {
  uint levels = 0;
  for (uint i = 0; i < 32; i += 8) {
    uint code = codes >> i & 15;
    uint word = code < 8 ? (code < 4 ? a : b) : (code < 12 ? c : d);
    levels |= (word >> (8 * (code & 3)) & 255) << i;
  }
  return levels;
}

// Of iq4_nl and iq4_xs: -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113.
void iq4_levels(inout uint q[8]) {
  for (uint u = 0; u < 8; ++u)
    q[u] = look_up(q[u], 0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u);
}

// Twice the values of four-bit floats: 0, 1, 2, 3, 4, 6, 8, 12 and their negatives, each 12 too high; q is as halves() makes it.
// All four bits at a time, by arithmetic: a magnitude m above 4 counts m - 4 more, the largest two more still.
const int kFp4Zero = 12;
void fp4_levels(uvec4 n, out uint q[8]) {
  [[unroll]] for (uint u = 0; u < 4; ++u) {
    uint m = n[u] & 0x77777777u, above = ((n[u] >> 2) & 0x11111111u) * 3, more = m & above;
    uint magnitude = m + more + ((more & (more >> 1) & 0x11111111u) << 1);
    uint negative = magnitude & ((n[u] >> 3) & 0x11111111u) * 15;
    uint rest = magnitude - negative, zero = 0xccccccccu - negative;
    q[u] = (rest & 0x0f0f0f0fu) + (zero & 0x0f0f0f0fu);
    q[4 + u] = (rest >> 4 & 0x0f0f0f0fu) + (zero >> 4 & 0x0f0f0f0fu);
  }
}
