// A row in f16 (common/half_row.glsl) of `count` values, a constant, of which value i is ROW_VALUE(i), zero behind its end. All
// of the workgroup come here; each invocation keeps its values until the largest one of all is known.

#include "common/group_sum.glsl"
#include "common/half_row.glsl"

#define HALF_STORE_ROW(row, count)                                                                 \
  {                                                                                                \
    const uint fours = (count + kHalfPadding - 1) / kHalfPadding * (kHalfPadding / 4);             \
    const uint each = (fours + kLocal - 1) / kLocal;                                               \
    vec4 own[each];                                                                                \
    float largest = 0.0;                                                                           \
    [[unroll]] for (uint n = 0; n < each; ++n) {                                                   \
      uint at = 4 * (n * kLocal + local_index());                                                  \
      own[n] = vec4(ROW_VALUE(at), ROW_VALUE(at + 1), ROW_VALUE(at + 2), ROW_VALUE(at + 3));       \
      vec4 size = abs(own[n]);                                                                     \
      largest = max(largest, max(max(size.x, size.y), max(size.z, size.w)));                       \
    }                                                                                              \
    largest = group_max(largest);                                                                  \
    [[unroll]] for (uint n = 0; n < each; ++n) {                                                   \
      uint at = n * kLocal + local_index();                                                        \
      uvec2 words = half_words(own[n] * half_factor(largest));                                     \
      if (at < fours) {                                                                            \
        au32[(row) + 2 * at] = words.x;                                                            \
        au32[(row) + 2 * at + 1] = words.y;                                                        \
      }                                                                                            \
    }                                                                                              \
    if (local_index() == 0)                                                                        \
      a32[(row) + 2 * fours] = half_inverse(largest);                                              \
  }
