// Activations in 8 bits: groups of 32 with a scale each, and the sums of their codes. A row of P groups (the number of groups,
// rounded up to 32) has 10 P words: codes, woven like floats in lane order; scales; sums, that of the first 16 codes in the
// low half, that of the others in the high one.

uint q8_padded(uint count) { return (count + 1023) / 1024 * 32; }

// Four words of codes 16 j.. of group g, as the index of 16 bytes from the row's start.
uint q8_codes(uint g, uint j) { return (g / 32 * 2 + j) * 32 + g % 32; }

// The words of one group from its values. `row` is the row's start in the arena, in words.
void q8_store(uint row, uint count, uint g, float values[32]) {
  float largest = 0.0;
  for (uint i = 0; i < 32; ++i)
    largest = max(largest, abs(values[i]));
  float inverse = largest > 0.0 ? 127.0 / largest : 0.0;
  int sums[2] = int[2](0, 0);
  for (uint k = 0; k < 8; ++k) {
    uint word = 0;
    for (uint c = 0; c < 4; ++c) {
      int code = int(clamp(roundEven(values[4 * k + c] * inverse), -127.0, 127.0));
      sums[k / 4] += code;
      word |= (uint(code) & 255) << (8 * c);
    }
    au32[row + q8_codes(g, k / 4) * 4 + k % 4] = word;
  }
  a32[row + q8_padded(count) * 8 + g] = largest / 127.0;
  au32[row + q8_padded(count) * 9 + g] = (uint(sums[0]) & 0xffffu) | uint(sums[1]) << 16;
}
