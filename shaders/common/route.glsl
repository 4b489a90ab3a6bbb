// From a logit an expert to the chosen experts and their weights (formats/artifact/artifact.fbs, MoeRouteOp). All invocations of
// a workgroup come here. An expert's place in the choice is the number of those ahead of it, so no expert waits for another.

layout(constant_id = SPEC_ROUTED) const uint kRouted = 8; // experts to choose from
layout(constant_id = SPEC_SCORING) const uint kScoring = 0; // softmax, logistic, softmax of the chosen, root of softplus
layout(constant_id = SPEC_ROUTE_BIAS) const uint kRouteBias = 0;
layout(constant_id = SPEC_WEIGHTED) const uint kWeighted = 0; // finished weights are multiplied by a vector
layout(constant_id = SPEC_NORMALIZE) const uint kNormalize = 0;
layout(constant_id = SPEC_NORM_EPSILON) const float kNormEpsilon = 0.0;
layout(constant_id = SPEC_NORM_MINIMUM) const float kNormMinimum = 0.0;
layout(constant_id = SPEC_ROUTE_SCALE) const float kRouteScale = 1.0;
layout(constant_id = SPEC_GROUPS) const uint kRouteGroups = 1;
layout(constant_id = SPEC_GROUPS_USED) const uint kGroupsUsed = 1;

layout(constant_id = SPEC_MASKED) const uint kMasked = 0; // experts may be closed, which then weigh nothing

#define kLeast uintBitsToFloat(0xff800000u)

const uint kChosen = kExperts != 0 ? kExperts : 1;

shared float route_scores[kRouted];
shared float route_keys[kRouted]; // what the choice goes by; what is no number, or closed, comes last, lowest number first
shared float route_groups[kRouteGroups];
shared uint chosen[kChosen];
shared float chosen_weights[kChosen];

bool ahead(float a, uint at_a, float b, uint at_b) { return a > b || (a == b && at_a < at_b); }

bool open_expert(uint e) { return kMasked == 0 || kept(e); }

// Whether the order of logits is that of the keys, so that scores can wait.
const bool kByLogits = kScoring != 1 && kScoring != 3 && kRouteBias == 0 && kRouteGroups == 1;

// `bias` is the start of a vector.
void score_experts(uint logits, uint bias) {
  float most = kLeast;
  for (uint e = local_index(); e < kRouted; e += kLocal)
    most = max(most, a32[logits + e]);
  if (kScoring == 0)
    most = group_max(most);
  float sum = 0.0;
  for (uint e = local_index(); e < kRouted; e += kLocal) {
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
    route_scores[e] = s;
  }
  if (kScoring == 0)
    sum = group_sum(sum);
  for (uint e = local_index(); e < kRouted; e += kLocal) {
    if (kScoring == 0)
      route_scores[e] /= sum;
    if (!kByLogits) {
      float key = kRouteBias != 0 ? route_scores[e] + v32[bias + e] : route_scores[e];
      route_keys[e] = isnan(key) || !open_expert(e) ? kLeast : key;
    }
  }
  barrier();
}

// Leaves the kGroupsUsed best groups open, by the sum of their two best keys.
void close_groups() {
  const uint size = kRouted / kRouteGroups;
  for (uint g = local_index(); g < kRouteGroups; g += kLocal) {
    float first = kLeast, second = kLeast;
    for (uint e = g * size; e < (g + 1) * size; ++e) {
      second = max(second, min(first, route_keys[e]));
      first = max(first, route_keys[e]);
    }
    route_groups[g] = size > 1 ? first + second : first;
  }
  barrier();
  for (uint e = local_index(); e < kRouted; e += kLocal) {
    uint before = 0;
    for (uint o = 0; o < kRouteGroups; ++o)
      if (ahead(route_groups[o], o, route_groups[e / size], e / size))
        ++before;
    if (before >= kGroupsUsed)
      route_keys[e] = kLeast;
  }
  barrier();
}

// Leaves `chosen`.
void choose_experts(uint logits, uint bias) {
  if (kByLogits) {
    for (uint e = local_index(); e < kRouted; e += kLocal)
      route_keys[e] = isnan(a32[logits + e]) || !open_expert(e) ? kLeast : a32[logits + e];
    barrier();
  } else {
    score_experts(logits, bias);
    if (kRouteGroups > 1)
      close_groups();
  }
  for (uint e = local_index(); e < kRouted; e += kLocal) {
    float key = route_keys[e];
    uint before = 0;
    for (uint first = 0; first < kRouted; first += 8)
      [[unroll]] for (uint i = 0; i < 8; ++i) {
        uint o = first + i;
        if (o < kRouted && ahead(route_keys[min(o, kRouted - 1)], o, key, e))
          ++before;
      }
    if (before < kExperts)
      chosen[before] = e;
  }
  barrier();
}

// What a chosen expert weighs beside the others.
float expert_weight(uint k, float first) {
  float score = route_scores[chosen[k]];
  return !open_expert(chosen[k]) ? 0.0 : kScoring == 2 ? exp(score - first) : score;
}

// Behind choose_experts: leaves `chosen_weights`; `scales` is the start of a vector.
void weigh_experts(uint logits, uint bias, uint scales) {
  if (kByLogits)
    score_experts(logits, bias);
  if (local_index() < kExperts) {
    float first = route_scores[chosen[0]];
    float sum = 0.0;
    for (uint k = 0; k < kExperts; ++k)
      sum += expert_weight(k, first);
    float divisor = kScoring == 2 ? sum : 1.0;
    if (kNormalize != 0)
      divisor *= max(sum / divisor + kNormEpsilon, kNormMinimum);
    // Where none is open there is no sum to divide by.
    float weight = kMasked != 0 && sum == 0.0 ? 0.0 : expert_weight(local_index(), first) / divisor * kRouteScale;
    chosen_weights[local_index()] = kWeighted != 0 ? weight * v32[scales + chosen[local_index()]] : weight;
  }
  barrier();
}

// What both left, in the arena: the numbers of the chosen experts, then their weights.
void leave_choice(uint to) {
  if (local_index() < kExperts) {
    au32[to + local_index()] = chosen[local_index()];
    a32[to + kExperts + local_index()] = chosen_weights[local_index()];
  }
}
