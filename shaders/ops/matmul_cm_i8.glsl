// y = W x for many tokens on cooperative matrices: weights and activations, the latter in 8 bits, become f16 in shared memory,
// products are summed in f32. A tile of kTileRows rows and kTokens tokens a workgroup of eight subgroups of 32 invocations,
// each of which has 32 by 32 of it; products are of 16 rows, 8 tokens and 16 columns. Grid: tiles of rows in x (and y), tiles
// of tokens in z.
//
// Written for GL_NV_cooperative_matrix, which every compiler of GLSL knows; codegen/spirv makes the module that of
// SPV_KHR_cooperative_matrix, telling a factor's side by its shape.

#extension GL_NV_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

layout(constant_id = SPEC_TOKENS) const uint kTokens = 64;
layout(constant_id = SPEC_BIAS) const uint kBias = 0;
layout(constant_id = SPEC_RESIDUAL) const uint kResidual = 0;
layout(constant_id = SPEC_SCALE) const float kScale = 1.0;
layout(constant_id = SPEC_OUT_ORDER) const uint kOutOrder = 0;

#include "common/group_sum.glsl"
#include "common/order.glsl"
#include "common/q8.glsl"

const uint kTileRows = 128, kTileTokens = 64; // kTokens says the same to the host
const uint kStep = 2;   // groups of 32 columns at a time
const uint kStride = 9; // of a row of 64 halves, in 16 bytes: neighbouring rows lie in other banks
// Powers of two that keep small weights and large activations within f16.
const float kWeightFactor = 64.0, kInputFactor = 1.0 / 16.0;
const float kMost = 65504.0;

shared uvec4 tile_w[kTileRows * kStride];
shared uvec4 tile_x[kTileTokens * kStride];
shared float staged[8 * 128]; // a product of each subgroup

#define FACTOR_W fcoopmatNV<16, gl_ScopeSubgroup, 16, 16>
#define FACTOR_X fcoopmatNV<16, gl_ScopeSubgroup, 16, 8>
#define PRODUCT fcoopmatNV<32, gl_ScopeSubgroup, 16, 8>

// What an invocation has on its way to the tiles, for two steps: groups of weights of one row, or halves of a group of
// activations of one token. The first half of the invocations has weights.
uint levels[2][kStep][8];
vec2 scales[2][kStep][kScales];
uvec4 codes[2][kStep];
float code_scales[2][kStep];

bool has_weights() { return local_index() < kTileRows; }

void fetch(uint set, uint first) {
  [[unroll]] for (uint i = 0; i < kStep; ++i) {
    uint g = min(first + i, kGroups - 1);
    if (has_weights()) {
      uint row = min(group_index() * kTileRows + local_index(), kRows - 1);
      uint q[8];
      vec2 s[kScales];
      group_levels(push[PUSH_WEIGHT], row, g, q);
      group_scales(push[PUSH_WEIGHT], row, g, s);
      [[unroll]] for (uint k = 0; k < 8; ++k)
        levels[set][i][k] = q[k];
      [[unroll]] for (uint k = 0; k < kScales; ++k)
        scales[set][i][k] = first + i < kGroups ? s[k] : vec2(0.0);
    } else {
      uint at = local_index() - kTileRows;
      uint token = min(gl_WorkGroupID.z * kTileTokens + at / 2, token_count() - 1);
      uint row = input_row(first_token() + token);
      codes[set][i] = au128[row / 4 + q8_codes(g, at % 2)];
      code_scales[set][i] = first + i < kGroups ? a32[row + q8_padded(kCols) * 8 + g] * kInputFactor : 0.0;
    }
  }
}

int code_at(uint word, uint i) { return bitfieldExtract(int(word), int(8 * i), 8); }

uint two_weights(uint word, uint i, vec2 scale) {
  vec2 w = vec2(code_at(word, i) - kZero, code_at(word, i + 1) - kZero) * (scale.x * kUnit * kWeightFactor);
  if (kMinimum)
    w -= scale.y * kWeightFactor;
  return packHalf2x16(clamp(w, -kMost, kMost));
}

uint two_inputs(uint word, uint i, float scale) {
  return packHalf2x16(clamp(vec2(code_at(word, i), code_at(word, i + 1)) * scale, -kMost, kMost));
}

void leave(uint set) {
  const uint each = 8 / kScales;
  [[unroll]] for (uint i = 0; i < kStep; ++i) {
    if (has_weights()) {
      [[unroll]] for (uint k = 0; k < 4; ++k) {
        vec2 first = scales[set][i][2 * k / each], second = scales[set][i][(2 * k + 1) / each];
        uint even = levels[set][i][2 * k], odd = levels[set][i][2 * k + 1];
        tile_w[local_index() * kStride + 4 * i + k] = uvec4(two_weights(even, 0, first), two_weights(even, 2, first),
                                                            two_weights(odd, 0, second), two_weights(odd, 2, second));
      }
    } else {
      uint at = local_index() - kTileRows;
      uint place = at / 2 * kStride + 4 * i + at % 2 * 2;
      uvec4 c = codes[set][i];
      float s = code_scales[set][i];
      tile_x[place] = uvec4(two_inputs(c.x, 0, s), two_inputs(c.x, 2, s), two_inputs(c.y, 0, s), two_inputs(c.y, 2, s));
      tile_x[place + 1] = uvec4(two_inputs(c.z, 0, s), two_inputs(c.z, 2, s), two_inputs(c.w, 0, s), two_inputs(c.w, 2, s));
    }
  }
}

// Matrices in variables of their own: drivers keep arrays of them in memory.
PRODUCT sum00, sum01, sum02, sum03, sum10, sum11, sum12, sum13;
uint own_row, own_token;

#define LOAD_W(w, a) coopMatLoadNV(w, tile_w, (own_row + 16 * a) * kStride + 2 * k, kStride, false)
#define LOAD_X(x, b) coopMatLoadNV(x, tile_x, (own_token + 8 * b) * kStride + 2 * k, kStride, true)
#define ADD(sum, w, x) sum = coopMatMulAddNV(w, x, sum)

// The products of the step that `set` holds, while the one after the next is asked for.
void take(uint set, uint first) {
  barrier();
  leave(set);
  barrier();
  if (first + 2 * kStep < kGroups)
    fetch(set, first + 2 * kStep);
  [[unroll]] for (uint k = 0; k < 2 * kStep; ++k) {
    FACTOR_W w0, w1;
    FACTOR_X x0, x1, x2, x3;
    LOAD_W(w0, 0);
    LOAD_W(w1, 1);
    LOAD_X(x0, 0);
    LOAD_X(x1, 1);
    LOAD_X(x2, 2);
    LOAD_X(x3, 3);
    ADD(sum00, w0, x0);
    ADD(sum10, w1, x0);
    ADD(sum01, w0, x1);
    ADD(sum11, w1, x1);
    ADD(sum02, w0, x2);
    ADD(sum12, w1, x2);
    ADD(sum03, w0, x3);
    ADD(sum13, w1, x3);
  }
}

// One product to its rows and tokens, by way of shared memory.
void put(PRODUCT sum, uint a, uint b) {
  const float factor = kScale / (kWeightFactor * kInputFactor);
  uint stage = gl_SubgroupID * 128;
  barrier();
  coopMatStoreNV(sum, staged, stage, 16, true);
  barrier();
  for (uint e = gl_SubgroupInvocationID; e < 128; e += gl_SubgroupSize) {
    uint row = group_index() * kTileRows + own_row + 16 * a + e % 16;
    uint t = gl_WorkGroupID.z * kTileTokens + own_token + 8 * b + e / 16;
    if (row >= kRows || t >= token_count())
      continue;
    uint token = first_token() + t;
    float y = staged[stage + e] * factor;
    if (kBias != 0)
      y += v32[push[PUSH_VECTOR] + row];
    if (kResidual != 0)
      y += a32[aux_row(token) + place_of(row, kOutOrder)];
    a32[out_row(token) + place_of(row, kOutOrder)] = y;
  }
}

void main() {
#ifdef CODEC_SETUP
  codec_setup();
#endif
  if (gl_WorkGroupID.z * kTileTokens >= token_count())
    return;
  own_row = gl_SubgroupID / 2 * 32;
  own_token = gl_SubgroupID % 2 * 32;
  sum00 = sum01 = sum02 = sum03 = sum10 = sum11 = sum12 = sum13 = PRODUCT(0.0);
  fetch(0, 0);
  if (kStep < kGroups)
    fetch(1, kStep);
  for (uint first = 0; first < kGroups; first += 2 * kStep) {
    take(0, first);
    if (first + kStep < kGroups)
      take(1, first + kStep);
  }
  put(sum00, 0, 0);
  put(sum01, 0, 1);
  put(sum02, 0, 2);
  put(sum03, 0, 3);
  put(sum10, 1, 0);
  put(sum11, 1, 1);
  put(sum12, 1, 2);
  put(sum13, 1, 3);
}
