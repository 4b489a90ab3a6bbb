// The interface that all shaders share, as formats/artifact/shader_abi.h states it. Buffers are read in words, or in 8 or 16
// bytes at a time; all views are of the same memory.

#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

#include "common/abi.glsl"

layout(local_size_x_id = SPEC_LOCAL) in;
layout(constant_id = SPEC_LOCAL) const uint kLocal = 64;

layout(set = 0, binding = 0) readonly buffer WeightWords { uint w32[]; };
layout(set = 0, binding = 0) readonly buffer WeightPairs { uvec2 w64[]; };
layout(set = 0, binding = 0) readonly buffer WeightQuads { uvec4 w128[]; };
layout(set = 0, binding = 1) buffer ArenaFloats { float a32[]; };
layout(set = 0, binding = 1) buffer ArenaVectors { vec4 a128[]; };
layout(set = 0, binding = 1) buffer ArenaWords { uint au32[]; };
layout(set = 0, binding = 1) buffer ArenaQuads { uvec4 au128[]; };
layout(set = 0, binding = 2) readonly buffer VectorFloats { float v32[]; };
layout(set = 0, binding = 2) readonly buffer VectorWords { uint vu32[]; };
layout(set = 0, binding = 3) buffer CacheFloats { float kv32[]; };
layout(set = 0, binding = 3) buffer CacheWords { uint kvu32[]; };
layout(set = 0, binding = 3) buffer CacheQuads { uvec4 kvu128[]; };
layout(set = 0, binding = 4) readonly buffer StepWords { uint step_words[]; };
layout(set = 0, binding = 5) buffer ResultWords { uint results[]; };

layout(push_constant) uniform Push { uint push[16]; };

// The tokens that a dispatch works on: first_token() + i for i < token_count(). Steps of a single token need not be asked.
layout(constant_id = SPEC_ONE_TOKEN) const uint kOneToken = 0;

uint first_token() { return kOneToken == 0 && push[PUSH_HEAD] != 0 ? step_words[STEP_HEAD_FIRST] : 0; }
uint token_count() {
  if (kOneToken != 0)
    return 1;
  return push[PUSH_HEAD] != 0 ? step_words[STEP_HEAD_COUNT] : step_words[STEP_TOKENS];
}
uint token_position(uint token) { return step_words[STEP_POSITION] + token; }

// The row of a token at one of the starts among the push constants.
uint row_at(uint start, uint stride, uint token) { return push[start] + token * push[stride]; }
uint input_row(uint token) { return row_at(PUSH_INPUT, PUSH_INPUT_STRIDE, token); }
uint out_row(uint token) { return row_at(PUSH_OUT, PUSH_OUT_STRIDE, token); }
uint aux_row(uint token) { return row_at(PUSH_AUX, PUSH_AUX_STRIDE, token); }
uint third_row(uint token) { return row_at(PUSH_THIRD, PUSH_THIRD_STRIDE, token); }

// Whether the mask in force keeps a column, or expert.
bool kept(uint column) { return (vu32[push[PUSH_MASK] + column / 32] >> column % 32 & 1u) != 0; }

// The place of this workgroup's first two dimensions in one row of workgroups: what does not fit the first dimension
// goes on in the second.
uint group_index() { return gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x; }

// For devices whose subgroups exchange nothing, whatever is written for any size of a subgroup sees subgroups of one
// invocation.
layout(constant_id = SPEC_SUBGROUPS) const uint kSubgroups = 1;
const uint kMostSubgroups = kSubgroups != 0 ? kLocal / 4 : kLocal;

uint subgroup_size() { return kSubgroups != 0 ? gl_SubgroupSize : 1; }
uint subgroup_count() { return kSubgroups != 0 ? gl_NumSubgroups : kLocal; }
uint subgroup_number() { return kSubgroups != 0 ? gl_SubgroupID : gl_LocalInvocationIndex; }
uint subgroup_lane() { return kSubgroups != 0 ? gl_SubgroupInvocationID : 0; }
#define EXCHANGE(type) type exchanged(type x, uint o) { return kSubgroups != 0 ? subgroupShuffleXor(x, o) : x; }
EXCHANGE(float)
EXCHANGE(vec4)
EXCHANGE(uint)
EXCHANGE(int)
#define gl_SubgroupSize subgroup_size()
#define gl_NumSubgroups subgroup_count()
#define gl_SubgroupID subgroup_number()
#define gl_SubgroupInvocationID subgroup_lane()
#define subgroupShuffleXor exchanged

// This invocation's place in its workgroup, so that neighbours of a subgroup are neighbours here.
uint local_index() { return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID; }
