// Activations in 8 bits: groups of 32 with a scale each, and the sums of their codes. A row of P groups (the number of groups,
// rounded up to 32) has 10 P words: codes, woven like floats in lane order; scales; sums, that of the first 16 codes in the
// low half, that of the others in the high one.

uint q8_padded(uint count) { return (count + 1023) / 1024 * 32; }

// Four words of codes 16 j.. of group g, as the index of 16 bytes from the row's start.
uint q8_codes(uint g, uint j) { return (g / 32 * 2 + j) * 32 + g % 32; }

// The words of one group from its values. `row` is the row's start in the arena, in words.
void q8_store(uint row, uint count, uint g, float values[32]) {
  float largest = 0.0;
  [[unroll]] for (uint i = 0; i < 32; ++i)
    largest = max(largest, abs(values[i]));
  float inverse = largest > 0.0 ? 127.0 / largest : 0.0;
  int sums[2] = int[2](0, 0);
  [[unroll]] for (uint k = 0; k < 8; ++k) {
    uint word = 0;
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      int code = int(clamp(roundEven(values[4 * k + c] * inverse), -127.0, 127.0));
      sums[k / 4] += code;
      word |= (uint(code) & 255) << (8 * c);
    }
    au32[row + q8_codes(g, k / 4) * 4 + k % 4] = word;
  }
  a32[row + q8_padded(count) * 8 + g] = largest / 127.0;
  au32[row + q8_padded(count) * 9 + g] = (uint(sums[0]) & 0xffffu) | uint(sums[1]) << 16;
}

// The same of `groups` groups that an array in shared memory has, which no function takes in place: they become those from
// `first`. All of the workgroup come here.
#define Q8_STORE_SHARED(shared_values, groups, row, count, first)                     \
  {                                                                                   \
    barrier();                                                                        \
    for (uint g = gl_LocalInvocationIndex; g < (groups); g += kLocal) {               \
      float values[32];                                                               \
      for (uint i = 0; i < 32; ++i)                                                   \
        values[i] = shared_values[32 * g + i];                                        \
      q8_store(row, count, (first) + g, values);                                      \
    }                                                                                 \
  }

// The same by eight neighbouring invocations, of a subgroup that has so many: number k has values 4 k.. of group g. All of the
// subgroup come here, and those without a group do not `store`.
void q8_store_eighth(uint row, uint count, uint g, uint k, vec4 x, bool store) {
  float largest = max(max(abs(x.x), abs(x.y)), max(abs(x.z), abs(x.w)));
  largest = max(largest, subgroupShuffleXor(largest, 1));
  largest = max(largest, subgroupShuffleXor(largest, 2));
  largest = max(largest, subgroupShuffleXor(largest, 4));
  float inverse = largest > 0.0 ? 127.0 / largest : 0.0;
  ivec4 codes = ivec4(clamp(roundEven(x * inverse), -127.0, 127.0));
  int near = codes.x + codes.y + codes.z + codes.w;
  near += subgroupShuffleXor(near, 1);
  near += subgroupShuffleXor(near, 2);
  int far = subgroupShuffleXor(near, 4);
  if (!store)
    return;
  au32[row + q8_codes(g, k / 4) * 4 + k % 4] = uint(codes.x & 255) | uint(codes.y & 255) << 8 |
                                               uint(codes.z & 255) << 16 | uint(codes.w & 255) << 24;
  if (k == 0) {
    a32[row + q8_padded(count) * 8 + g] = largest / 127.0;
    au32[row + q8_padded(count) * 9 + g] = (uint(near) & 0xffffu) | uint(far) << 16;
  }
}
