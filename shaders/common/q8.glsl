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

// The groups of `items` items, by eight invocations each, or one where subgroups are smaller. ITEM##_ROW(i) is where the words
// of item i start, ITEM##_GROUP(i) its group of `count` values, ITEM##_VALUE(i, j) value j of it, and whether it is stored
// ITEM##_THERE(i). All of the workgroup come here.
#define Q8_STORE_GROUPS(items, count, ITEM)                                                                      \
  if (gl_SubgroupSize < 8) {                                                                                     \
    for (uint own = local_index(); own < (items); own += kLocal) {                                               \
      float group_values[32];                                                                                    \
      for (uint j = 0; j < 32; ++j)                                                                              \
        group_values[j] = ITEM##_VALUE(own, j);                                                                  \
      if (ITEM##_THERE(own))                                                                                     \
        q8_store(ITEM##_ROW(own), count, ITEM##_GROUP(own), group_values);                                       \
    }                                                                                                            \
  } else {                                                                                                       \
    for (uint first_item = 0; first_item < (items); first_item += kLocal / 8) {                                  \
      uint item = first_item + local_index() / 8, own = min(item, (items) - 1), k = local_index() % 8;           \
      vec4 x = vec4(ITEM##_VALUE(own, 4 * k), ITEM##_VALUE(own, 4 * k + 1), ITEM##_VALUE(own, 4 * k + 2),        \
                    ITEM##_VALUE(own, 4 * k + 3));                                                               \
      q8_store_eighth(ITEM##_ROW(own), count, ITEM##_GROUP(own), k, x, own == item && ITEM##_THERE(own));        \
    }                                                                                                            \
  }

// The same of one row, whose value i is ROW_VALUE(i), zero behind its end: `items` groups from `first` on, if there are so many.
#define SPAN_ROW(i) span_row
#define SPAN_GROUP(i) (span_first + (i))
#define SPAN_VALUE(i, j) ROW_VALUE(32 * SPAN_GROUP(i) + (j))
#define SPAN_THERE(i) (32 * SPAN_GROUP(i) < span_count)
#define Q8_STORE_SPAN(row, count, first, items)                  \
  {                                                              \
    uint span_row = row, span_count = count, span_first = first; \
    Q8_STORE_GROUPS(items, span_count, SPAN)                     \
  }
