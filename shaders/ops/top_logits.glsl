// The largest logits of a token, for the host: each workgroup takes a share of the ids and leaves a record of its largest
// kTop of them. What no record names is at most the least of its share's.
//
// A record: the share's largest value; the sum of exp((x - largest) / temperature); 1 when a value is NaN or positive infinity;
// a word of nothing; kTop values, descending; their ids. Grid: kGroups shares in x, the token in z.

layout(constant_id = SPEC_ROWS) const uint kCount = 32;
layout(constant_id = SPEC_GROUPS) const uint kGroups = 1;
layout(constant_id = SPEC_TOP) const uint kTop = 8;

#include "common/best.glsl"
#include "common/group_sum.glsl"

const uint kBlock = 32; // ids side by side that one share has: the frequent ones, which are neighbours, are divided
const uint kBlocks = (kCount + kBlock - 1) / kBlock;
const uint kOwn = ((kBlocks + kGroups - 1) / kGroups * kBlock + kLocal - 1) / kLocal;

shared float top_values[kTop];
shared uint top_ids[kTop];

uint id_of(uint own) {
  uint at = own * kLocal + local_index();
  return (at / kBlock * kGroups + gl_WorkGroupID.x) * kBlock + at % kBlock;
}

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint row = input_row(first_token() + gl_WorkGroupID.z);
  float inverse = uintBitsToFloat(step_words[push[PUSH_AUX]]);
  uint limit = min(kCount, step_words[push[PUSH_AUX] + 1]);
  float values[kOwn];
  float largest = kLeast;
  float bad = 0.0;
  for (uint i = 0; i < kOwn; ++i) {
    uint id = id_of(i);
    float x = id < kCount ? a32[row + id] : kLeast;
    if (isnan(x) || x == -kLeast) {
      bad = 1.0;
      x = kLeast;
    }
    values[i] = id < limit ? x : kLeast;
    largest = max(largest, values[i]);
  }
  largest = group_max(largest);
  bad = group_max(bad);
  float sum = 0.0;
  for (uint i = 0; i < kOwn; ++i)
    if (values[i] > kLeast)
      sum += exp((values[i] - largest) * inverse);
  sum = group_sum(sum);
  for (uint n = 0; n < kTop; ++n) {
    float value = kLeast;
    uint place = kCount;
    for (uint i = 0; i < kOwn; ++i)
      if (values[i] > value) {
        value = values[i];
        place = id_of(i);
      }
    group_best(value, place);
    for (uint i = 0; i < kOwn; ++i)
      if (id_of(i) == place)
        values[i] = kLeast;
    if (local_index() == 0) {
      top_values[n] = value;
      top_ids[n] = place;
    }
  }
  barrier();
  uint record = push[PUSH_OUT] + gl_WorkGroupID.x * (4 + 2 * kTop);
  if (local_index() == 0) {
    results[record] = floatBitsToUint(largest);
    results[record + 1] = floatBitsToUint(sum);
    results[record + 2] = bad != 0.0 ? 1 : 0;
  }
  for (uint n = local_index(); n < kTop; n += kLocal) {
    results[record + 4 + n] = floatBitsToUint(top_values[n]);
    results[record + 4 + kTop + n] = top_ids[n];
  }
}
