// y = W x for many tokens on cooperative matrices of f16, summed in f32: rows of activations as common/half_row.glsl has them,
// weights decoded to f16, times kWeightFactor, into shared memory.
//
// A tile of kGroupRows rows (of each matrix) and kTokens tokens a workgroup, of which each subgroup, of 32 invocations, has
// kSubRows by kSubTokens. A sum runs over all columns in steps of 16, in their order, whatever the tile: a token's bits do not
// depend on the tokens beside it.
//
// It is written on the words of common/matrices.glsl. Where an element of a sum stands in an invocation is for the device to
// choose: it is read from a matrix of places.

#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

#include "common/product.glsl"
#include "common/fetched.glsl"
#include "common/half_row.glsl"

layout(constant_id = SPEC_SUB_ROWS) const uint kSubRows = 64;
layout(constant_id = SPEC_SUB_TOKENS) const uint kSubTokens = 64;
layout(constant_id = SPEC_SETS) const uint kSets = 1; // tiles in shared memory: of two one is filled while the other is read
layout(constant_id = SPEC_RINGS) const uint kRings = 1; // steps on their way from memory at a time

const uint kTileRows = kMatrices * kGroupRows;
const uint kStep = kAhead; // groups of 32 columns at a time
// Of a row or a token, in 16 bytes: neighbours lie in other banks.
const uint kStride = 4 * kStep + 1;
const uint kOwnWeights = (kStep * kTileRows + kLocal - 1) / kLocal;  // groups of an invocation
const uint kOwnInputs = (4 * kStep * kTokens + kLocal - 1) / kLocal; // its 16 bytes of activations

shared uvec4 tile_w[kSets * kTileRows * kStride];
shared uvec4 tile_x[kSets * kTokens * kStride];
shared uint tile_rows[kTokens]; // where inputs start, in 16 bytes
shared uint tile_out[kTokens];  // where results do
shared uint tile_aux[kResidual != 0 ? kTokens : 1];
shared float tile_factor[kTokens];
shared float places[16 * 8];

const uint kHigh = kSubRows / 16 * kMatrices, kWide = kSubTokens / kSide; // products of a subgroup, of kSide tokens
const uint kRowQuads = (kCols + kHalfPadding - 1) / kHalfPadding * (kHalfPadding / 8); // of activations

// What an invocation has on its way to the tiles, in variables of their own as all that is to stay in registers: SPIRV-Tools
// leave arrays of a module with matrices as they are.
#define EACH_WEIGHT(DO, ring) \
  DO(0, ring##_weights0) \
  DO(1, ring##_weights1) \
  DO(2, ring##_weights2) \
  DO(3, ring##_weights3)
#define EACH_INPUT(DO, ring) \
  DO(0, ring##_inputs0) \
  DO(1, ring##_inputs1) \
  DO(2, ring##_inputs2) \
  DO(3, ring##_inputs3) \
  DO(4, ring##_inputs4) \
  DO(5, ring##_inputs5) \
  DO(6, ring##_inputs6) \
  DO(7, ring##_inputs7)
#define WEIGHT(n, name) Fetched name;
#define INPUT(n, name) uvec4 name;
EACH_WEIGHT(WEIGHT, even)
EACH_INPUT(INPUT, even)
EACH_WEIGHT(WEIGHT, odd)
EACH_INPUT(INPUT, odd)

// Items of a step: neighbours are groups of one row, or 16 bytes of one token.
#define ASK_WEIGHT(n, to) \
  if (n < kOwnWeights) { \
    uint i = n * kLocal + local_index(), r = min(i / kStep, kTileRows - 1); \
    to = fetch(product_weight(r / kGroupRows, 0), min(group_index() * kGroupRows + r % kGroupRows, kRows - 1), \
               min(g + i % kStep, kGroups - 1)); \
  }
#define ASK_INPUT(n, to) \
  if (n < kOwnInputs) { \
    uint i = n * kLocal + local_index(), t = min(i / (4 * kStep), kTokens - 1); \
    to = au128[tile_rows[t] + min(4 * g + i % (4 * kStep), kRowQuads - 1)]; \
  }
// What lies behind the last step is asked for once more.
#define ASK(ring, first) \
  { \
    uint g = first; \
    EACH_WEIGHT(ASK_WEIGHT, ring) \
    EACH_INPUT(ASK_INPUT, ring) \
  }

#ifdef CODEC_INTEGER
// Weights have a factor that leaves those of models far from both ends of f16, and scales are held where nothing overflows:
// a level has eight bits at most.
const float kWeightFactor = 8.0, kMostScale = 127.0, kMostMinimum = 32000.0;

f16vec2 of_level(uint levels) {
  return unpackFloat2x16(levels) - f16vec2(float16_t(1024 + 128 + kZero));
}
// Four levels as halves (0, 2), (1, 3): a byte with its highest bit turned around is 128 more, and behind the bits of 1024 in
// f16 it counts as it is.
uvec2 of_levels(uint q, f16vec2 scale, f16vec2 minimum) {
  const uint ones = 0x00ff00ffu, turned = 0x64806480u;
  f16vec2 near = of_level((q & ones) ^ turned), far = of_level((q >> 8 & ones) ^ turned);
  if (kMinimum)
    return uvec2(packFloat2x16(fma(near, scale, -minimum)), packFloat2x16(fma(far, scale, -minimum)));
  return uvec2(packFloat2x16(near * scale), packFloat2x16(far * scale));
}

void leave_weight(uint at, Fetched from) {
  uint q[8];
  vec2 s[kScales];
  decode(from, q, s);
  [[unroll]] for (uint j = 0; j < 4; ++j) {
    vec2 both = s[2 * j * kScales / 8];
    f16vec2 scale = f16vec2(float16_t(clamp(both.x * (kUnit * kWeightFactor), -kMostScale, kMostScale)));
    f16vec2 minimum = f16vec2(float16_t(kMinimum ? clamp(both.y * kWeightFactor, -kMostMinimum, kMostMinimum) : 0.0));
    tile_w[at + j] = uvec4(of_levels(q[2 * j], scale, minimum), of_levels(q[2 * j + 1], scale, minimum));
  }
}
#endif

#define LEAVE_WEIGHT(n, from) \
  if (n < kOwnWeights) { \
    uint i = n * kLocal + local_index(); \
    if (kStep * kTileRows % kLocal == 0 || i < kStep * kTileRows) \
      leave_weight((set * kTileRows + i / kStep) * kStride + 4 * (i % kStep), from); \
  }
#define LEAVE_INPUT(n, from) \
  if (n < kOwnInputs) { \
    uint i = n * kLocal + local_index(); \
    if (4 * kStep * kTokens % kLocal == 0 || i < 4 * kStep * kTokens) \
      tile_x[(set * kTokens + i / (4 * kStep)) * kStride + i % (4 * kStep)] = from; \
  }

#define LEAVE(ring, to) \
  { \
    const uint set = to; \
    EACH_WEIGHT(LEAVE_WEIGHT, ring) \
    EACH_INPUT(LEAVE_INPUT, ring) \
  }

// The products of a step. The sums are a variable of main(), which stays in registers.
#define ADD_PRODUCTS(set) \
  [[unroll]] for (uint k = 0; k < 2 * kStep; ++k) { \
    FACTOR w[kHigh]; \
    [[unroll]] for (uint a = 0; a < kHigh; ++a) { \
      uint r = a / (kSubRows / 16) * kGroupRows + own_row + a % (kSubRows / 16) * 16; \
      LOAD_FACTOR(w[a], tile_w, ((set) * kTileRows + r) * kStride + 2 * k, kStride); \
    } \
    [[unroll]] for (uint b = 0; b < kWide; ++b) { \
      SECOND x; \
      LOAD_SECOND_COLUMNS(x, tile_x, ((set) * kTokens + own_token + kSide * b) * kStride + 2 * k, kStride); \
      [[unroll]] for (uint a = 0; a < kHigh; ++a) { \
        ADD_PRODUCT(w[a], x, sums[a * kWide + b]); \
      } \
    } \
  }

float biased(float product, uint m, uint row) { return kBias != 0 ? product + product_bias(m, row) : product; }

void main() {
#ifdef CODEC_SETUP
  codec_setup();
#endif
  if (product_idle())
    return;
  uint count = product_count();
  for (uint t = local_index(); t < kTokens; t += kLocal) {
    uint item = product_item(min(t, count - 1)), start = input_row(product_input(item, 0));
    tile_rows[t] = start / 4;
    tile_out[t] = out_row(product_out(item));
    if (kResidual != 0)
      tile_aux[t] = aux_row(item);
    tile_factor[t] = a32[start + half_padded(kCols) / 2] * (kScale / kWeightFactor);
  }
  for (uint i = local_index(); i < 16 * kSide; i += kLocal)
    places[i] = float(i);
  barrier();
  const uint across = kGroupRows / kSubRows;
  uint own_row = local_index() / 32 % across * kSubRows, own_token = local_index() / 32 / across * kSubTokens;
  SUM sums[kHigh * kWide];
  [[unroll]] for (uint i = 0; i < kHigh * kWide; ++i)
    sums[i] = SUM_OF(0.0);
  ASK(even, 0)
  if (kRings == 1) {
    uint to = 0;
    for (uint at = 0; at < kGroups; at += kStep) {
      if (kSets == 1)
        barrier();
      LEAVE(even, to)
      barrier();
      if (at + kStep < kGroups)
        ASK(even, at + kStep)
      ADD_PRODUCTS(to)
      to = (to + 1) % kSets;
    }
  } else if (kSets == 1) {
    ASK(odd, kStep)
    for (uint at = 0; at < kGroups; at += 2 * kStep) {
      barrier();
      LEAVE(even, 0)
      barrier();
      ASK(even, at + 2 * kStep)
      ADD_PRODUCTS(0)
      if (at + kStep < kGroups) {
        barrier();
        LEAVE(odd, 0)
        barrier();
        ASK(odd, at + 3 * kStep)
        ADD_PRODUCTS(0)
      }
    }
  } else {
    // The next step is decoded beside the products of this one, and the one behind it is on its way.
    LEAVE(even, 0)
    ASK(even, kStep)
    barrier();
    for (uint at = 0; at < kGroups; at += 2 * kStep) {
      ASK(odd, at + 2 * kStep)
      ADD_PRODUCTS(0)
      LEAVE(even, 1)
      barrier();
      if (at + kStep < kGroups) {
        ASK(even, at + 3 * kStep)
        ADD_PRODUCTS(1)
        LEAVE(odd, 0)
        barrier();
      }
    }
  }
  SUM place;
  LOAD_SUM(place, places, 0, kSide);
  const uint high = kSubRows / 16;
  [[unroll]] for (uint a = 0; a < high; ++a)
    [[unroll]] for (uint b = 0; b < kWide; ++b)
      [[unroll]] for (uint e = 0; e < kSumElements; ++e) {
        uint at = uint(place[e]), t = own_token + kSide * b + at % kSide;
        uint row = group_index() * kGroupRows + own_row + 16 * a + at / kSide;
        if (row < kRows && t < count) {
          float y = biased(sums[a * kWide + b][e] * tile_factor[t], 0, row);
          if (kPair != 0)
            y = gated(y, biased(sums[(kPair != 0 ? high + a : a) * kWide + b][e] * tile_factor[t], 1, row), kActivation,
                      kAlpha, kLimit);
          if (kResidual != 0)
            y += a32[tile_aux[t] + place_of(row, kOutOrder)];
          a32[tile_out[t] + place_of(row, kOutOrder)] = y;
        }
      }
}
