// The words of common/matrices.glsl by the arithmetic that every device has. Each invocation keeps the factors whole and four
// elements of a sum: slow, there to try what is written on these words.

struct Factor { float of[256]; };
struct Second { float of[128]; };

#define FACTOR Factor
#define SECOND Second
#define SUM vec4

const uint kSide = 8;
const uint kSumStep = 32; // elements of a sum between two of an invocation

#define HALF_OF(array, at, i) unpackHalf2x16(array[(at) + (i) / 8][(i) / 2 % 4])[(i) % 2]

#define SUM_OF(x) vec4(x)
#define LOAD_FACTOR(m, array, at, stride) \
  for (uint i = 0; i < 256; ++i) \
    m.of[i] = HALF_OF(array, (at) + i / 16 * (stride), i % 16);
#define LOAD_SECOND(m, array, at, stride) \
  for (uint i = 0; i < 128; ++i) \
    m.of[i] = HALF_OF(array, (at) + i / 8 * (stride), i % 8);
#define LOAD_SECOND_COLUMNS(m, array, at, stride) \
  for (uint i = 0; i < 128; ++i) \
    m.of[i] = HALF_OF(array, (at) + i % 8 * (stride), i / 8);
#define LOAD_ROWS(m, array, at) \
  for (uint e = 0; e < 4; ++e) \
    m[e] = array[(at) + (e * kSumStep + local_index() % kSumStep) / 8];
#define LOAD_SUM(m, array, at, stride) \
  for (uint e = 0; e < 4; ++e) { \
    uint i = e * kSumStep + local_index() % kSumStep; \
    m[e] = array[(at) + i / 8 * (stride) + i % 8]; \
  }
const uint kSumElements = 4;
#define STORE_SUM(m, array, at, stride) \
  for (uint e = 0; e < 4; ++e) { \
    uint i = e * kSumStep + local_index() % kSumStep; \
    array[(at) + i / 8 * (stride) + i % 8 / 4][i % 4] = floatBitsToUint(m[e]); \
  }
#define ADD_PRODUCT(a, b, sum) \
  for (uint e = 0; e < 4; ++e) { \
    uint i = e * kSumStep + local_index() % kSumStep; \
    for (uint k = 0; k < 16; ++k) \
      sum[e] = fma(a.of[i / 8 * 16 + k], b.of[k * 8 + i % 8], sum[e]); \
  }
#define TIMES_ROWS(sum, m) sum *= m;
