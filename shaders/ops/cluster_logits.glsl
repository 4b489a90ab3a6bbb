// out[v] += log softmax(clusters)[v / S] - log sum of exponentials of v's cluster, in place: logits in two levels. One workgroup a
// cluster of S; grid: clusters in x, tokens in z. Input: the clusters' logits.

layout(constant_id = SPEC_ROWS) const uint kClusters = 2;
layout(constant_id = SPEC_GROUP) const uint kSize = 32;

#include "common/group_sum.glsl"

float log_sum(uint at, uint count) {
  float most = uintBitsToFloat(0xff800000u);
  for (uint i = local_index(); i < count; i += kLocal)
    most = max(most, a32[at + i]);
  most = group_max(most);
  float sum = 0.0;
  for (uint i = local_index(); i < count; i += kLocal)
    sum += exp(a32[at + i] - most);
  return most + log(group_sum(sum));
}

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z, cluster = group_index();
  if (cluster >= kClusters)
    return;
  uint block = out_row(token) + cluster * kSize;
  float add = a32[input_row(token) + cluster] - log_sum(input_row(token), kClusters);
  add -= log_sum(block, kSize);
  for (uint i = local_index(); i < kSize; i += kLocal)
    a32[block + i] += add;
}
