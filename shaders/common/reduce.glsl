// Sums over teams of lanes, a power of two of neighbouring invocations. The order of additions is the same for every size of
// a subgroup: neighbours first, then neighbouring pairs, and so on.

// Places for sums that cross subgroups; the file that includes this one says how many it needs at once.
shared float team_parts[kTeamValues * kMostSubgroups];

// Adds up one value within the part of the team that this subgroup holds.
float subgroup_part(float value, uint lanes) {
  [[unroll]] for (uint i = 0; i < 7; ++i)
    if ((1u << i) < lanes && (1u << i) < gl_SubgroupSize)
      value += subgroupShuffleXor(value, 1u << i);
  return value;
}

// Puts part `index` where the team's first lane finds it; a barrier() follows the last one.
void leave_part(float value, uint lanes, uint index) {
  if (lanes > gl_SubgroupSize && gl_SubgroupInvocationID == 0)
    team_parts[index * gl_NumSubgroups + gl_SubgroupID] = value;
}

// For the team's first lane: the sum of the parts of `index`.
float team_sum(float own, uint lanes, uint index) {
  if (lanes <= gl_SubgroupSize)
    return own;
  uint first = index * gl_NumSubgroups + gl_SubgroupID;
  uint count = lanes / gl_SubgroupSize;
  for (uint o = 1; o < count; o <<= 1)
    for (uint i = 0; i + o < count; i += 2 * o)
      team_parts[first + i] += team_parts[first + i + o];
  return team_parts[first];
}
