// From router logits to the chosen experts and their weights, and the plan that sorts a batch's pairs by expert.

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/ops/moe.h"
#include "runtime/overlay/overlay.h"

namespace cortiq::runtime {
namespace {

constexpr float kLeast = -std::numeric_limits<float>::infinity();

/// `doubles` has room for `experts` numbers.
void scores_of(const float* logits, uint64_t experts, artifact::Scoring scoring, double* doubles, float* scores) {
  switch (scoring) {
  case artifact::Scoring::Softmax: {
    const double largest = *std::max_element(logits, logits + experts);
    double sum = 0;
    for (uint64_t e = 0; e < experts; ++e)
      sum += doubles[e] = std::exp(logits[e] - largest);
    for (uint64_t e = 0; e < experts; ++e)
      scores[e] = static_cast<float>(doubles[e] / sum);
    return;
  }
  case artifact::Scoring::Sigmoid:
    for (uint64_t e = 0; e < experts; ++e)
      scores[e] = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logits[e]))));
    return;
  case artifact::Scoring::SoftmaxSelected:
    std::copy_n(logits, experts, scores);
    return;
  case artifact::Scoring::SqrtSoftplus:
    for (uint64_t e = 0; e < experts; ++e) {
      const double x = logits[e];
      scores[e] = static_cast<float>(std::sqrt(std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)))));
    }
    return;
  }
}

class MoeRouteCall final : public Call, public ExpertChoice {
public:
  CallInfo info() const override { return {"moe_route", ids.elements, logits.elements, 0}; }
  uint64_t items(const StepShape& shape) const override { return shape.count; }
  uint64_t scratch_bytes() const override {
    return logits.elements * sizeof(double) + (2 * logits.elements + groups) * sizeof(float);
  }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    auto* doubles = reinterpret_cast<double*>(scratch);
    auto* scores = reinterpret_cast<float*>(doubles + logits.elements);
    for (uint64_t token = shape.first + begin; token < shape.first + end; ++token) {
      scores_of(logits.f32(step.arena, token), logits.elements, scoring, doubles, scores);
      choose(step, scores, reinterpret_cast<int32_t*>(ids.bytes(step.arena, token)), weights.f32(step.arena, token));
    }
  }

  uint64_t expert_count() const override { return logits.elements; }
  uint64_t choice_count() const override { return ids.elements; }
  uint64_t choice_scratch_bytes() const override { return scratch_bytes() + ids.elements * sizeof(float); }
  void of_logits(const StepContext& step, const float* values, int32_t* chosen, uint8_t* scratch) const override {
    auto* doubles = reinterpret_cast<double*>(scratch);
    auto* scores = reinterpret_cast<float*>(doubles + logits.elements);
    scores_of(values, logits.elements, scoring, doubles, scores);
    choose(step, scores, chosen, scores + 2 * logits.elements + groups);
  }

  SlotRef logits, ids, weights;
  const float *bias = nullptr, *scales = nullptr;
  artifact::Scoring scoring{};
  bool normalize = false;
  double norm_epsilon = 0, norm_minimum = 0, scale = 1;
  uint64_t groups = 1, groups_used = 1;

private:
  // `scores` has room behind it for the keys of the choice and for the groups' scores. A key is -inf once its expert
  // was taken or may not be; what is no number is -inf from the start, and taken last, lowest number first.
  void choose(const StepContext& step, float* scores, int32_t* chosen, float* out) const {
    const uint64_t experts = logits.elements, k = ids.elements;
    float* keys = scores + experts;
    for (uint64_t e = 0; e < experts; ++e) {
      keys[e] = bias ? scores[e] + bias[e] : scores[e];
      if (std::isnan(keys[e]))
        keys[e] = kLeast;
    }
    const formats::OverlayMask* closed =
        mask.kind == MaskBits::Kind::kExperts && step.overlay ? step.overlay->mask : nullptr;
    for (uint64_t e = 0; closed && e < experts; ++e)
      if (!closed->expert(mask.layer, e))
        keys[e] = kLeast;
    if (groups > 1)
      close_groups(keys, keys + experts);
    double sum = 0, largest = -std::numeric_limits<double>::infinity();
    bool none_open = closed != nullptr;
    for (uint64_t j = 0; j < k; ++j) {
      uint64_t best = experts;
      float top = kLeast;
      for (uint64_t e = 0; e < experts; ++e)
        if (keys[e] > top) {
          top = keys[e];
          best = e;
        }
      if (best == experts)
        best = first_left(chosen, j);
      keys[best] = kLeast;
      chosen[j] = static_cast<int32_t>(best);
      out[j] = scores[best];
      if (closed && !closed->expert(mask.layer, best)) // none is open any more: the choice counts for nothing
        out[j] = scoring == artifact::Scoring::SoftmaxSelected ? kLeast : 0;
      else
        none_open = false;
      sum += out[j];
      largest = std::max<double>(largest, out[j]);
    }
    if (none_open) { // there is no sum to divide by
      std::fill_n(out, k, 0.0f);
      return;
    }
    if (scoring == artifact::Scoring::SoftmaxSelected) {
      sum = 0;
      for (uint64_t j = 0; j < k; ++j)
        sum += std::exp(out[j] - largest);
      for (uint64_t j = 0; j < k; ++j)
        out[j] = static_cast<float>(std::exp(out[j] - largest) / sum);
      sum = 0;
      for (uint64_t j = 0; j < k; ++j)
        sum += out[j];
    }
    const double divisor = normalize ? std::fmax(sum + norm_epsilon, norm_minimum) : 1;
    for (uint64_t j = 0; j < k; ++j)
      out[j] = static_cast<float>(out[j] / divisor * scale) * (scales ? scales[chosen[j]] : 1.0f);
  }

  /// The lowest number that is not among the first `taken` of `chosen`: logits that are no numbers still name experts.
  static uint64_t first_left(const int32_t* chosen, uint64_t taken) {
    uint64_t e = 0;
    while (std::find(chosen, chosen + taken, static_cast<int32_t>(e)) != chosen + taken)
      ++e;
    return e;
  }

  /// Leaves only the experts of the best groups, by the sum of their two best keys.
  void close_groups(float* keys, float* group_scores) const {
    const uint64_t size = logits.elements / groups;
    for (uint64_t g = 0; g < groups; ++g) {
      float first = kLeast, second = kLeast;
      for (uint64_t e = g * size; e < (g + 1) * size; ++e) {
        if (keys[e] > first) {
          second = first;
          first = keys[e];
        } else if (keys[e] > second) {
          second = keys[e];
        }
      }
      group_scores[g] = size > 1 ? first + second : first;
      if (std::isnan(group_scores[g]))
        group_scores[g] = kLeast;
    }
    for (uint64_t left = groups; left > groups_used; --left) {
      // The worst one goes; of equal ones that with the higher number.
      uint64_t worst = groups;
      for (uint64_t g = 0; g < groups; ++g)
        if (!std::isnan(group_scores[g]) && (worst == groups || group_scores[g] <= group_scores[worst]))
          worst = g;
      group_scores[worst] = std::numeric_limits<float>::quiet_NaN();
      std::fill_n(keys + worst * size, size, kLeast);
    }
  }
};

class MoePlanCall final : public Call {
public:
  CallInfo info() const override { return {"moe_plan", ids.elements, experts, 0}; }
  bool of_experts() const override { return true; }
  uint64_t items(const StepShape&) const override { return 1; }

  void run(const StepContext& step, const StepShape& shape, uint64_t, uint64_t, uint8_t*) const override {
    const uint64_t k = ids.elements;
    const MoePlan plan(slot, step.arena, shape, experts, k);
    // None (below 0) is a choice only where experts run elsewhere too.
    auto id = [&](uint64_t token, uint64_t choice) {
      const int32_t expert = reinterpret_cast<const int32_t*>(ids.bytes(step.arena, shape.first + token))[choice];
      return std::clamp(expert, step.missing_experts ? -1 : 0, static_cast<int32_t>(experts) - 1);
    };
    std::fill_n(plan.first_pair, experts + 1, 0);
    for (uint64_t t = 0; t < shape.count; ++t)
      for (uint64_t j = 0; j < k; ++j)
        if (const int32_t expert = id(t, j); expert >= 0)
          ++plan.first_pair[expert + 1];
    int32_t used = 0;
    for (uint64_t e = 0; e < experts; ++e) {
      if (plan.first_pair[e + 1] != 0)
        plan.used[used++] = static_cast<int32_t>(e);
      plan.first_pair[e + 1] += plan.first_pair[e];
    }
    *plan.used_count = used;
    // Filling moves each expert's first pair to its end, which is the next one's first: moved back afterwards.
    for (uint64_t t = 0; t < shape.count; ++t)
      for (uint64_t j = 0; j < k; ++j) {
        const int32_t expert = id(t, j);
        if (expert < 0) {
          plan.pair_of[t * k + j] = -1;
          continue;
        }
        // Within the batch even where an artifact lays `ids` over the plan.
        const int32_t pair = std::clamp(plan.first_pair[expert]++, 0, static_cast<int32_t>(shape.count * k) - 1);
        plan.token[pair] = static_cast<int32_t>(t);
        plan.pair_of[t * k + j] = pair;
      }
    for (uint64_t e = experts; e > 0; --e)
      plan.first_pair[e] = plan.first_pair[e - 1];
    plan.first_pair[0] = 0;
  }

  SlotRef ids, slot;
  uint64_t experts = 0;
};

} // namespace

Status resolve_moe_route(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::MoeRouteOp& route = *op.op_as_MoeRouteOp();
  auto call = std::make_unique<MoeRouteCall>();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t experts, resolver.slot_elements(route.logits(), "moe_route"));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t k, resolver.slot_elements(route.ids(), "moe_route"));
  CORTIQ_ASSIGN_OR_RETURN(call->logits, resolver.f32_slot(route.logits(), experts, "moe_route"));
  CORTIQ_ASSIGN_OR_RETURN(call->ids, resolver.i32_slot(route.ids(), k, "moe_route"));
  CORTIQ_ASSIGN_OR_RETURN(call->weights, resolver.f32_slot(route.weights(), k, "moe_route"));
  if (route.bias() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->bias, resolver.vector(route.bias(), experts, "moe_route"));
  }
  if (route.scales() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->scales, resolver.vector(route.scales(), experts, "moe_route"));
  }
  call->groups = route.groups();
  call->groups_used = route.groups_used();
  if (call->groups == 0 || experts % call->groups != 0 || call->groups_used == 0 || call->groups_used > call->groups ||
      k > experts / call->groups * call->groups_used)
    return invalid("moe_route: " + std::to_string(k) + " of " + std::to_string(experts) + " experts, " +
                   std::to_string(call->groups_used) + " of " + std::to_string(call->groups) + " groups");
  if (route.scoring() > artifact::Scoring::SqrtSoftplus)
    return unsupported("moe_route: scoring " + std::to_string(static_cast<int>(route.scoring())) +
                       " is not known to this version");
  call->scoring = route.scoring();
  call->normalize = route.normalize();
  call->norm_epsilon = route.norm_epsilon();
  call->norm_minimum = route.norm_minimum();
  call->scale = route.scale();
  RouterRef router{{}, call.get()};
  for (const ProductRef& product : facts.products)
    if (product.out == route.logits())
      router.product = product; // slots serve again: the latest one counts
  facts.routers.push_back(router);
  out.push_back(std::move(call));
  return {};
}

Status resolve_moe_plan(const artifact::Call& op, const Resolver& resolver, ProgramFacts&, CallList& out) {
  const artifact::MoePlanOp& plan = *op.op_as_MoePlanOp();
  auto call = std::make_unique<MoePlanCall>();
  call->experts = plan.experts();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t k, resolver.slot_elements(plan.ids(), "moe_plan"));
  CORTIQ_ASSIGN_OR_RETURN(call->ids, resolver.i32_slot(plan.ids(), k, "moe_plan"));
  CORTIQ_ASSIGN_OR_RETURN(call->slot, moe_plan_slot(resolver, plan.plan(), call->experts, k, "moe_plan"));
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
