// Sums and maxima over a subgroup or the whole workgroup, known to every invocation. All of them have to come here.

shared float group_parts[kMostSubgroups];

// Each step is an addition of its own, not a loop's: drivers know how many there are.
float subgroup_sum(float value) {
  [[unroll]] for (uint i = 0; i < 7; ++i)
    if ((1u << i) < min(gl_SubgroupSize, kLocal))
      value += subgroupShuffleXor(value, 1u << i);
  return value;
}

float subgroup_max(float value) {
  [[unroll]] for (uint i = 0; i < 7; ++i)
    if ((1u << i) < min(gl_SubgroupSize, kLocal))
      value = max(value, subgroupShuffleXor(value, 1u << i));
  return value;
}

float group_sum(float value) {
  value = subgroup_sum(value);
  if (kLocal <= gl_SubgroupSize)
    return value;
  barrier();
  if (gl_SubgroupInvocationID == 0)
    group_parts[gl_SubgroupID] = value;
  barrier();
  float part = 0.0;
  for (uint i = gl_SubgroupInvocationID; i < gl_NumSubgroups; i += gl_SubgroupSize)
    part += group_parts[i];
  return subgroup_sum(part);
}

float group_max(float value) {
  value = subgroup_max(value);
  if (kLocal <= gl_SubgroupSize)
    return value;
  barrier();
  if (gl_SubgroupInvocationID == 0)
    group_parts[gl_SubgroupID] = value;
  barrier();
  float most = group_parts[0];
  for (uint i = gl_SubgroupInvocationID; i < gl_NumSubgroups; i += gl_SubgroupSize)
    most = max(most, group_parts[i]);
  return subgroup_max(most);
}
