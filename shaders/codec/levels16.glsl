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

// Four-bit floats: their magnitudes, doubled, as nibbles (0, 1, 2, 3, 4, 6, 8, 12), and all ones where one is negative. A magnitude m
// above 4 counts m - 4 more, the largest two more still.
uint fp4_magnitudes(uint n) {
  uint m = n & 0x77777777u, above = ((n >> 2) & 0x11111111u) * 3, more = m & above;
  return m + more + ((more & (more >> 1) & 0x11111111u) << 1);
}
uint fp4_negative(uint n) { return ((n >> 3) & 0x11111111u) * 15; }

// Levels, each 12 too high, of codes as halves() takes them.
const int kFp4Zero = 12;
void fp4_levels(uvec4 n, out uint q[8]) {
  [[unroll]] for (uint u = 0; u < 4; ++u) {
    uint magnitude = fp4_magnitudes(n[u]), negative = magnitude & fp4_negative(n[u]);
    uint rest = magnitude - negative, zero = 0xccccccccu - negative;
    q[u] = (rest & 0x0f0f0f0fu) + (zero & 0x0f0f0f0fu);
    q[4 + u] = (rest >> 4 & 0x0f0f0f0fu) + (zero >> 4 & 0x0f0f0f0fu);
  }
}
