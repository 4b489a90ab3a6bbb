// The largest value of a workgroup and the lowest number that has it; numbers that are none count as the smallest value.

shared float best_values[kMostSubgroups];
shared uint best_places[kMostSubgroups];

#define kLeast uintBitsToFloat(0xff800000u)

bool better(float a, uint at_a, float b, uint at_b) { return a > b || (a == b && at_a < at_b); }

void group_best(inout float value, inout uint place) {
  for (uint o = 1; o < min(gl_SubgroupSize, kLocal); o <<= 1) {
    float v = subgroupShuffleXor(value, o);
    uint at = subgroupShuffleXor(place, o);
    if (better(v, at, value, place)) {
      value = v;
      place = at;
    }
  }
  if (kLocal <= gl_SubgroupSize)
    return;
  barrier();
  if (gl_SubgroupInvocationID == 0) {
    best_values[gl_SubgroupID] = value;
    best_places[gl_SubgroupID] = place;
  }
  barrier();
  for (uint i = 0; i < gl_NumSubgroups; ++i)
    if (better(best_values[i], best_places[i], value, place)) {
      value = best_values[i];
      place = best_places[i];
    }
}
