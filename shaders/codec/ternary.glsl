// Digit s of each of four bytes that hold five base-3 digits as a fraction of 256, the first the highest.
uint ternary_digits(uint bytes, uint s) {
  uint power = s < 2 ? (s == 0 ? 1 : 3) : (s == 2 ? 9 : (s == 3 ? 27 : 81));
  uint even = (bytes & 0x00ff00ffu) * power & 0x00ff00ffu, odd = (bytes >> 8 & 0x00ff00ffu) * power & 0x00ff00ffu;
  return (even * 3 >> 8 & 0x00030003u) | (odd * 3 & 0x03000300u);
}
