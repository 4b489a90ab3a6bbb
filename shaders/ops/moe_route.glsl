// From a logit an expert to the chosen experts and their weights (formats/artifact/artifact.fbs, MoeRouteOp): a row has the
// numbers of the kExperts chosen ones, then their weights. One workgroup a token; grid: tokens in z.

layout(constant_id = SPEC_ROWS) const uint kCount = 8; // experts there are
layout(constant_id = SPEC_EXPERTS) const uint kExperts = 2;
layout(constant_id = SPEC_SCORING) const uint kScoring = 0; // softmax, logistic, softmax of the chosen, root of softplus
layout(constant_id = SPEC_BIAS) const uint kBias = 0;
layout(constant_id = SPEC_WEIGHTED) const uint kWeighted = 0; // finished weights are multiplied by the second vector
layout(constant_id = SPEC_NORMALIZE) const uint kNormalize = 0;
layout(constant_id = SPEC_NORM_EPSILON) const float kNormEpsilon = 0.0;
layout(constant_id = SPEC_NORM_MINIMUM) const float kNormMinimum = 0.0;
layout(constant_id = SPEC_SCALE) const float kScale = 1.0;
layout(constant_id = SPEC_GROUPS) const uint kGroups = 1;
layout(constant_id = SPEC_GROUPS_USED) const uint kGroupsUsed = 1;

#include "common/best.glsl"
#include "common/group_sum.glsl"

shared float scores[kCount];
shared float keys[kCount]; // what the choice goes by; what is no number, or closed, comes last, lowest number first
shared bool taken[kCount];
shared float group_keys[kGroups];
shared uint chosen[kExperts];

void score_all(uint logits) {
  float most = kLeast;
  for (uint e = local_index(); e < kCount; e += kLocal)
    most = max(most, a32[logits + e]);
  most = group_max(most);
  float sum = 0.0;
  for (uint e = local_index(); e < kCount; e += kLocal) {
    float x = a32[logits + e];
    float s = x;
    if (kScoring == 0) {
      s = exp(x - most);
      sum += s;
    } else if (kScoring == 1) {
      s = 1.0 / (1.0 + exp(-x));
    } else if (kScoring == 3) {
      s = sqrt(max(x, 0.0) + log(1.0 + exp(-abs(x))));
    }
    scores[e] = s;
    taken[e] = false;
  }
  sum = group_sum(sum);
  for (uint e = local_index(); e < kCount; e += kLocal) {
    if (kScoring == 0)
      scores[e] /= sum;
    float key = kBias != 0 ? scores[e] + v32[push[PUSH_VECTOR] + e] : scores[e];
    keys[e] = isnan(key) ? kLeast : key;
  }
  barrier();
}

// Leaves the kGroupsUsed best groups open, by the sum of their two best keys.
void close_groups() {
  const uint size = kCount / kGroups;
  for (uint g = local_index(); g < kGroups; g += kLocal) {
    float first = kLeast, second = kLeast;
    for (uint e = g * size; e < (g + 1) * size; ++e) {
      second = max(second, min(first, keys[e]));
      first = max(first, keys[e]);
    }
    group_keys[g] = size > 1 ? first + second : first;
  }
  barrier();
  for (uint e = local_index(); e < kCount; e += kLocal) {
    uint ahead = 0;
    for (uint o = 0; o < kGroups; ++o)
      if (better(group_keys[o], o, group_keys[e / size], e / size))
        ++ahead;
    if (ahead >= kGroupsUsed)
      keys[e] = kLeast;
  }
  barrier();
}

void main() {
  if (gl_WorkGroupID.z >= token_count())
    return;
  uint token = first_token() + gl_WorkGroupID.z;
  score_all(input_row(token));
  if (kGroups > 1)
    close_groups();
  for (uint k = 0; k < kExperts; ++k) {
    float value = kLeast;
    uint place = 0xffffffffu;
    for (uint e = local_index(); e < kCount; e += kLocal)
      if (!taken[e] && better(keys[e], e, value, place)) {
        value = keys[e];
        place = e;
      }
    group_best(value, place);
    if (local_index() == 0) {
      chosen[k] = place;
      taken[place] = true;
    }
    barrier();
  }
  if (local_index() != 0)
    return;
  float weights[kExperts];
  float sum = 0.0;
  for (uint k = 0; k < kExperts; ++k) {
    weights[k] = scores[chosen[k]];
    if (kScoring == 2)
      weights[k] = exp(weights[k] - scores[chosen[0]]);
    sum += weights[k];
  }
  float divisor = kScoring == 2 ? sum : 1.0;
  if (kNormalize != 0)
    divisor *= max(sum / divisor + kNormEpsilon, kNormMinimum);
  for (uint k = 0; k < kExperts; ++k) {
    float weight = weights[k] / divisor * kScale;
    au32[out_row(token) + k] = chosen[k];
    a32[out_row(token) + kExperts + k] = kWeighted != 0 ? weight * v32[push[PUSH_VECTOR2] + chosen[k]] : weight;
  }
}
