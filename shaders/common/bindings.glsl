// The interface that all shaders share: one descriptor set, sixteen push constants, the first specialisation constant.
// Buffers are read in words or in 16 bytes at a time; both views are of the same memory.

#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLocal = 64;

// Weights.
layout(set = 0, binding = 0) readonly buffer WeightWords { uint w32[]; };
layout(set = 0, binding = 0) readonly buffer WeightQuads { uvec4 w128[]; };
// Activations and everything else that lives for one step.
layout(set = 0, binding = 1) buffer ArenaFloats { float a32[]; };
layout(set = 0, binding = 1) buffer ArenaVectors { vec4 a128[]; };
layout(set = 0, binding = 1) buffer ArenaWords { uint au32[]; };
layout(set = 0, binding = 1) buffer ArenaQuads { uvec4 au128[]; };
// Vectors of f32: norm weights, biases, rotation tables.
layout(set = 0, binding = 2) readonly buffer VectorFloats { float v32[]; };
// Keys and values.
layout(set = 0, binding = 3) buffer CacheFloats { float kv32[]; };
layout(set = 0, binding = 3) buffer CacheVectors { vec4 kv128[]; };
layout(set = 0, binding = 3) buffer CacheWords { uint kvu32[]; };
// What differs from step to step, so that recorded commands can be replayed.
layout(set = 0, binding = 4) readonly buffer Step {
  uint tokens;   // in this step
  uint position; // of the first one in its sequence
  uint step_reserved0;
  uint step_reserved1;
  uint ids[];    // of the tokens
} step_;
// What the host reads.
layout(set = 0, binding = 5) buffer Results { uint results[]; };

layout(push_constant) uniform Push { uint p[16]; } push;

// The place of this workgroup's first two dimensions in one row of workgroups: what does not fit the first dimension
// goes on in the second.
uint group_index() { return gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x; }

// This invocation's place in its workgroup, so that neighbours of a subgroup are neighbours here.
uint local_index() { return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID; }
