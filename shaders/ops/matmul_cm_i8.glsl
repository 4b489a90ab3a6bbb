// y = W x for many tokens, activations in 8 bits, on cooperative matrices of integers. A product of 16 rows, 8 tokens and 32
// columns is exact, and what becomes of it in f32 is what add_group (common/product_i8.glsl) does in the order of
// matmul_tile_i8.glsl, so the bits are those of a single row with as many lanes.
//
// A tile of kMatrices * kGroupRows rows and kTokens tokens a workgroup, of which each subgroup, of 32 invocations, has 32 by
// 32. Levels and codes go through shared memory; where a group has several scales, its levels lie there once a scale, with
// zeros for those of the others.
//
// Written for GL_NV_cooperative_matrix, which every compiler of GLSL knows; codegen/spirv makes the module that of
// SPV_KHR_cooperative_matrix, telling a factor's side by its shape. Where an element of a product stands in an invocation is
// for the device to choose: it is read from a matrix of places.

#extension GL_NV_cooperative_matrix : require
#extension GL_NV_integer_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require

#include "common/product.glsl"
#include "common/product_i8.glsl"
#include "common/fetched.glsl"

const uint kTileRows = kMatrices * kGroupRows;
layout(constant_id = SPEC_SETS) const uint kSets = 2;
const uint kStep = kScales <= 2 ? kAhead : 1; // groups of 32 columns at a time
const uint kPieces = kStep * kScales;     // products of 32 columns among them
// Of a row and of a token, in 16 bytes: neighbours lie in other banks.
const uint kStrideW = 2 * kPieces + 1, kStrideX = 2 * kStep + 1;
const uint kItems = kStep * (kTileRows + kTokens); // groups of a row or a token in a step
const uint kOwnItems = (kItems + kLocal - 1) / kLocal; // of an invocation

// Several of each: one is filled while products are made of the other.
shared uvec4 tile_w[kSets * kTileRows * kStrideW];
shared uvec4 tile_x[kSets * kTokens * kStrideX];
shared float tile_scale[kSets * kPieces * kTileRows];
shared float tile_minimum[kMinimum ? kSets * kPieces * kTileRows : 1];
shared float tile_input[kSets * kStep * kTokens];
shared float tile_codes[kMinimum ? kSets * kPieces * kTokens : 1]; // sums of codes, negative
shared uint tile_rows[kTokens];                               // where inputs start
shared int places[16 * 8];

#define FACTOR_W icoopmatNV<8, gl_ScopeSubgroup, 16, 32>
#define FACTOR_X icoopmatNV<8, gl_ScopeSubgroup, 32, 8>
#define PRODUCT icoopmatNV<32, gl_ScopeSubgroup, 16, 8>
#define SCALES fcoopmatNV<32, gl_ScopeSubgroup, 16, 8>

// A number whose bits, with an integer of 22 bits added to them, are those of the sum of both.
const int kShiftBits = 0x4b400000;
const float kShift = 12582912.0;

// Places of an invocation's four elements within a product.
uvec4 element_row, element_token;
uint own_row, own_token; // of the subgroup's part of the tile

void find_places() {
  PRODUCT found;
  coopMatLoadNV(found, places, 0, 8, false);
  uvec4 place = uvec4(found[0], found[1], found[2], found[3]);
  element_row = place / 8;
  element_token = place % 8;
  own_row = gl_SubgroupID % (kTileRows / 32) * 32;
  own_token = gl_SubgroupID / (kTileRows / 32) * 32;
}

// What all elements of a row, or of a token, have in common: a matrix whose columns, or rows, lie in one place.
vec4 elements_of(SCALES m) { return vec4(m[0], m[1], m[2], m[3]); }
#define OF_ROWS(value, there, tile, first) \
  vec4 value = vec4(0.0); \
  if (there) { \
    SCALES m; \
    coopMatLoadNV(m, tile, first, 0, true); \
    value = elements_of(m); \
  }
#define OF_TOKENS(value, there, tile, first) \
  vec4 value = vec4(0.0); \
  if (there) { \
    SCALES m; \
    coopMatLoadNV(m, tile, first, 0, false); \
    value = elements_of(m); \
  }

// The group behind g in the order of lanes, and whether its lane has no more.
uint group_behind(uint g) { return g + kLanes < kGroups ? g + kLanes : g % kLanes + 1; }
bool ends_lane(uint g) { return g + kLanes >= kGroups; }

// What an invocation has on its way to the tiles, in variables of their own as all that is to stay in registers: SPIRV-Tools
// leave arrays of a module with matrices as they are.
Fetched weights0, weights1, weights2, weights3;
Input inputs0, inputs1, inputs2, inputs3;
#define EACH_ITEM(DO) \
  DO(0, weights0, inputs0) \
  DO(1, weights1, inputs1) \
  DO(2, weights2, inputs2) \
  DO(3, weights3, inputs3)

void ask(uint n, uint first, inout Fetched weight, inout Input from) {
  uint i = n * kLocal + local_index();
  bool of_row = i < kStep * kTileRows;
  if (!of_row)
    i -= kStep * kTileRows;
  const uint count = of_row ? kTileRows : kTokens;
  uint g = first;
  [[unroll]] for (uint k = 1; k < kStep; ++k)
    if (i >= k * count)
      g = group_behind(g);
  g = min(g, kGroups - 1);
  if (of_row) {
    uint r = i % kTileRows;
    weight = fetch(product_weight(r / kGroupRows, 0), min(group_index() * kGroupRows + r % kGroupRows, kRows - 1), g);
  } else if (i < kStep * kTokens) {
    from = fetch_input(tile_rows[i % kTokens], g);
  }
}
#define ASK(n, weight, from) \
  if (n < kOwnItems) \
    ask(n, g, weight, from);

uint without_zero(uint q) {
  const uint high = 0x80808080u;
  return kZero == 0 ? q : ((q | high) - uint(kZero) * 0x01010101u) ^ high;
}

// Words 4 h.. of a group for part s.
uvec4 words_of(uint q[8], uint s, uint h) {
  uvec4 words;
  [[unroll]] for (uint u = 0; u < 4; ++u)
    words[u] = (4 * h + u) / (8 / kScales) == s ? without_zero(q[4 * h + u]) : 0;
  return words;
}

void leave(uint n, uint set, Fetched weight, Input from) {
  uint i = n * kLocal + local_index();
  if (i < kStep * kTileRows) {
    uint k = i / kTileRows, r = i % kTileRows;
    uint q[8];
    vec2 s[kScales];
    decode(weight, q, s);
    [[unroll]] for (uint p = 0; p < kScales; ++p) {
      uint part = k * kScales + p;
      [[unroll]] for (uint h = 0; h < 2; ++h)
        tile_w[(set * kTileRows + r) * kStrideW + 2 * part + h] = words_of(q, p, h);
      tile_scale[(set * kPieces + part) * kTileRows + r] = s[p].x * kUnit;
      if (kMinimum)
        tile_minimum[(set * kPieces + part) * kTileRows + r] = s[p].y;
    }
  } else if (i < kItems) {
    i -= kStep * kTileRows;
    uint k = i / kTokens, t = i % kTokens;
    tile_x[(set * kTokens + t) * kStrideX + 2 * k] = from.near;
    tile_x[(set * kTokens + t) * kStrideX + 2 * k + 1] = from.far;
    tile_input[(set * kStep + k) * kTokens + t] = from.scale;
    if (kMinimum) {
      uint x[8];
      set_words(from.near, from.far, x);
      [[unroll]] for (uint p = 0; p < kScales; ++p)
        tile_codes[(set * kPieces + k * kScales + p) * kTokens + t] = float(-code_sum(from.both, p, x));
    }
  }
}
#define LEAVE(n, weight, from) \
  if (n < kOwnItems) \
    leave(n, set, weight, from);

// Products of 16 rows and 8 tokens: of the lane that is being summed, and of those before it.
vec4 lane00, lane01, lane02, lane03, lane10, lane11, lane12, lane13;
vec4 sum00, sum01, sum02, sum03, sum10, sum11, sum12, sum13;
#define EACH_SUM(DO) \
  DO(sum00, lane00, 0, 0) \
  DO(sum01, lane01, 0, 1) \
  DO(sum02, lane02, 0, 2) \
  DO(sum03, lane03, 0, 3) \
  DO(sum10, lane10, 1, 0) \
  DO(sum11, lane11, 1, 1) \
  DO(sum12, lane12, 1, 2) \
  DO(sum13, lane13, 1, 3)

vec4 added(FACTOR_W w, FACTOR_X x, vec4 scale, vec4 minimum, vec4 input_scale, vec4 codes, vec4 sum) {
  PRODUCT exact = coopMatMulAddNV(w, x, PRODUCT(kShiftBits));
  precise vec4 value = (intBitsToFloat(ivec4(exact[0], exact[1], exact[2], exact[3])) - kShift) * scale;
  if (kMinimum)
    value = fma(codes, minimum, value);
  precise vec4 next = fma(value, input_scale, sum);
  return next;
}

#define LOAD_W(w, a) \
  FACTOR_W w; \
  coopMatLoadNV(w, tile_w, (set * kTileRows + own_row + 16 * a) * kStrideW + 2 * part, kStrideW, false)
#define ADD_TOKENS(b, lane0, lane1) \
  { \
    FACTOR_X x; \
    coopMatLoadNV(x, tile_x, (set * kTokens + own_token + 8 * b) * kStrideX + 2 * k, kStrideX, true); \
    OF_TOKENS(scale, true, tile_input, (set * kStep + k) * kTokens + own_token + 8 * b) \
    OF_TOKENS(codes, kMinimum, tile_codes, (set * kPieces + part) * kTokens + own_token + 8 * b) \
    lane0 = added(w0, x, scale0, minimum0, scale, codes, lane0); \
    lane1 = added(w1, x, scale1, minimum1, scale, codes, lane1); \
  }

void add_products(uint set, uint k) {
  [[unroll]] for (uint p = 0; p < kScales; ++p) {
    uint part = k * kScales + p, first = (set * kPieces + part) * kTileRows + own_row;
    LOAD_W(w0, 0);
    LOAD_W(w1, 1);
    OF_ROWS(scale0, true, tile_scale, first)
    OF_ROWS(scale1, true, tile_scale, first + 16)
    OF_ROWS(minimum0, kMinimum, tile_minimum, first)
    OF_ROWS(minimum1, kMinimum, tile_minimum, first + 16)
    ADD_TOKENS(0, lane00, lane10)
    ADD_TOKENS(1, lane01, lane11)
    ADD_TOKENS(2, lane02, lane12)
    ADD_TOKENS(3, lane03, lane13)
  }
}

// A lane of one group is a product, which must not be joined with this sum.
vec4 with_lane(vec4 sum, vec4 lane) {
  precise vec4 next = sum + lane;
  return next;
}
#define END_LANE(sum, lane, a, b) \
  sum = with_lane(sum, lane); \
  lane = vec4(0.0);

// Whether nothing happens to a product that needs others beside it.
bool direct() { return kPair == 0 && kQuantOut == 0 && kNormIn == 0 && kNormOut == 0 && kShared == 0; }

void put_one(uint r, uint t, float sum) {
  precise float scaled = sum * kScale; // what is added to it is added to the rounded product, as product_write does
  float y = scaled;
  if (!direct()) {
    products[(r / kGroupRows * kTokens + t) * kGroupRows + r % kGroupRows] = y;
    return;
  }
  uint row = group_index() * kGroupRows + r;
  if (row >= kRows || t >= product_count())
    return;
  uint item = product_item(t);
  if (kBias != 0)
    y += product_bias(0, row);
  if (kResidual != 0)
    y += a32[aux_row(item) + place_of(row, kOutOrder)];
  a32[out_row(product_out(item)) + place_of(row, kOutOrder)] = y;
}

void put(uint a, uint b, vec4 sum) {
  [[unroll]] for (uint e = 0; e < 4; ++e)
    put_one(own_row + 16 * a + element_row[e], own_token + 8 * b + element_token[e], sum[e]);
}
#define PUT(sum, lane, a, b) put(a, b, sum);
#define CLEAR(sum, lane, a, b) sum = lane = vec4(0.0);

void main() {
#ifdef CODEC_SETUP
  codec_setup();
#endif
  if (product_idle())
    return;
  for (uint t = local_index(); t < kTokens; t += kLocal)
    tile_rows[t] = input_row(product_input(product_item(min(t, product_count() - 1)), 0));
  for (uint i = local_index(); i < 16 * 8; i += kLocal)
    places[i] = int(i);
  barrier();
  find_places();
  EACH_SUM(CLEAR)
  uint set = 0, g = 0;
  EACH_ITEM(ASK)
  for (uint at = 0; at < kGroups; at += kStep) {
    if (kSets == 1)
      barrier();
    EACH_ITEM(LEAVE)
    barrier();
    uint now = g;
    [[unroll]] for (uint k = 0; k < kStep; ++k)
      g = group_behind(g);
    if (at + kStep < kGroups) {
      EACH_ITEM(ASK)
    }
    [[unroll]] for (uint k = 0; k < kStep; ++k)
      if (kGroups % kStep == 0 || at + k < kGroups) {
        add_products(set, k);
        if (ends_lane(now)) {
          EACH_SUM(END_LANE)
        }
        now = group_behind(now);
      }
    set = (set + 1) % kSets;
  }
  EACH_SUM(PUT)
  if (!direct())
    product_write();
}
