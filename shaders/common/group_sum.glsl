// Sums and maxima over the whole workgroup, known to every invocation. All of them have to come here.

shared float group_parts[kMostSubgroups];

float group_sum(float value) {
  for (uint o = 1; o < min(gl_SubgroupSize, kLocal); o <<= 1)
    value += subgroupShuffleXor(value, o);
  if (kLocal <= gl_SubgroupSize)
    return value;
  barrier();
  if (gl_SubgroupInvocationID == 0)
    group_parts[gl_SubgroupID] = value;
  barrier();
  float sum = 0.0;
  for (uint i = 0; i < gl_NumSubgroups; ++i)
    sum += group_parts[i];
  return sum;
}

float group_max(float value) {
  for (uint o = 1; o < min(gl_SubgroupSize, kLocal); o <<= 1)
    value = max(value, subgroupShuffleXor(value, o));
  if (kLocal <= gl_SubgroupSize)
    return value;
  barrier();
  if (gl_SubgroupInvocationID == 0)
    group_parts[gl_SubgroupID] = value;
  barrier();
  float most = group_parts[0];
  for (uint i = 1; i < gl_NumSubgroups; ++i)
    most = max(most, group_parts[i]);
  return most;
}
