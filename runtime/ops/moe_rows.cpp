// What happens to single pairs between the matrices of a mixture of experts: activations gathered in the pairs' order,
// gates, and the weighed sum of each token's experts.

#include <cstring>

#include "formats/checked_math.h"
#include "runtime/ops/moe.h"
#include "runtime/ops/moe_stages.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/ops/moe_rows.cpp"
#include "hwy/foreach_target.h" // stands before every header that is compiled once a target

#include "runtime/ops/glu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {

/// out = x * scales, the scales being f16 bits; rows may be the same. Zeros behind up to a multiple of 16.
void ScaleColumns(const float* x, const uint16_t* scales, uint64_t count, float* out) {
  const F32 d;
  const hn::Rebind<hwy::float16_t, F32> d16;
  const size_t lanes = hn::Lanes(d);
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto bits = hn::LoadU(hn::RebindToUnsigned<decltype(d16)>(), scales + i);
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::PromoteTo(d, hn::BitCast(d16, bits))), d, out + i);
  }
  for (; i < count; ++i)
    out[i] = x[i] * formats::f16_to_f32(scales[i]);
  zero_tail(out, count);
}

void QuantizePair(const float* x, uint64_t begin, uint64_t end, uint64_t k, uint8_t* record, bool bf16) {
  quantize_range(x, begin, end, k, record, bf16);
}

void GatePair(const float* gate, const float* up, uint64_t count, artifact::Activation activation, float alpha,
              float limit, float* out) {
  glu_range(gate, up, count, activation, alpha, limit, out);
}

/// out += x * weight.
void AddWeighed(const float* x, float weight, uint64_t count, float* out) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  const auto factor = hn::Set(d, weight);
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::MulAdd(hn::LoadU(d, x + i), factor, hn::LoadU(d, out + i)), d, out + i);
  for (; i < count; ++i)
    out[i] += x[i] * weight;
}

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cortiq::runtime {
namespace {

HWY_EXPORT(AddWeighed);
HWY_EXPORT(GatePair);
HWY_EXPORT(QuantizePair);
HWY_EXPORT(ScaleColumns);

constexpr uint64_t kColumns = 2048; // an item's; a multiple of 32

class MoeGatherCall final : public Call, public PairCopies {
public:
  CallInfo info() const override { return {"moe_gather", choices, columns, 0}; }
  bool of_experts() const override { return true; }
  uint64_t items(const StepShape& shape) const override {
    return column_scales.empty() && shape.count <= read_in_place ? 0 : shape.count * choices;
  }
  uint64_t scratch_bytes() const override { return formats::f32_act_bytes(columns); }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    const MoePlan plan(plan_slot, step.arena, shape, experts, choices);
    for (uint64_t pair = begin; pair < end; ++pair) {
      const uint64_t token = shape.first + plan.token_of(pair);
      const uint64_t record = shape.first * choices + pair;
      if (column_scales.empty()) {
        if (out.present)
          std::memcpy(out.f32(step.arena, record), x.f32(step.arena, token), formats::f32_act_bytes(columns));
        if (act_out.present)
          std::memcpy(act_out.bytes(step.arena, record), act.bytes(step.arena, token), act_bytes);
        continue;
      }
      const uint16_t* scales = column_scales[plan.expert_of(pair)];
      if (!scales)
        continue;
      float* scaled = out.present ? out.f32(step.arena, record) : reinterpret_cast<float*>(scratch);
      HWY_DYNAMIC_DISPATCH(ScaleColumns)(x.f32(step.arena, token), scales, columns, scaled);
      if (act_out.present)
        HWY_DYNAMIC_DISPATCH(QuantizePair)(scaled, 0, columns, columns, act_out.bytes(step.arena, record),
                                           act_out.bf16);
    }
  }

  std::vector<ArenaRange> copies() const override {
    return column_scales.empty() ? written : std::vector<ArenaRange>();
  }
  void leave_out(uint64_t tokens) override { read_in_place = tokens; }

  SlotRef plan_slot, x, act, out, act_out;
  std::vector<const uint16_t*> column_scales;
  std::vector<ArenaRange> written;
  uint64_t experts = 0, choices = 0, columns = 0;
  uint64_t act_bytes = 0;     ///< of a token's quantized activations
  uint64_t read_in_place = 1; ///< tokens of the largest batch that is not copied
};

class MoeGluCall final : public Call, public PairGates {
public:
  CallInfo info() const override { return {"moe_glu", choices, gate.elements, 0}; }
  bool of_experts() const override { return true; }
  uint64_t items(const StepShape& shape) const override {
    return products && products->makes_gates() ? 0 : shape.count * choices * blocks();
  }
  uint64_t scratch_bytes() const override { return column_scratch_bytes(); }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    const MoePlan plan(plan_slot, step.arena, shape, widths.size(), choices);
    for (uint64_t item = begin; item < end; ++item) {
      const uint64_t pair = item / blocks(), expert = plan.expert_of(pair), first = item % blocks() * kColumns;
      if (step.missing_experts && pair >= plan.pairs_of(widths.size() - 1).second)
        break; // choices that run elsewhere have no pair
      if (first < widths[expert])
        run_columns(step, shape.first * choices + pair, expert, first, std::min(first + kColumns, widths[expert]),
                    scratch);
    }
  }

  const SlotRef& plan() const override { return plan_slot; }
  const SlotRef& gate_rows() const override { return gate; }
  const SlotRef& up_rows() const override { return up; }
  const std::vector<uint64_t>& expert_widths() const override { return widths; }
  std::vector<ArenaRange> written() const override { return outputs; }
  uint64_t column_scratch_bytes() const override { return kColumns * sizeof(float); }
  void leave_to(const ExpertProducts& makers) override { products = &makers; }

  void run_columns(const StepContext& step, uint64_t record, uint64_t expert, uint64_t begin, uint64_t end,
                   uint8_t* scratch) const override {
    const uint64_t width = widths[expert];
    for (uint64_t first = begin; first < end; first += kColumns) {
      const uint64_t count = std::min(kColumns, end - first);
      float* result = out.present ? out.f32(step.arena, record) + first : reinterpret_cast<float*>(scratch);
      HWY_DYNAMIC_DISPATCH(GatePair)
      (gate.f32(step.arena, record) + first, up.f32(step.arena, record) + first, count, activation, alpha, limit,
       result);
      if (!column_scales.empty() && column_scales[expert])
        HWY_DYNAMIC_DISPATCH(ScaleColumns)(result, column_scales[expert] + first, count, result);
      if (act_out.present)
        HWY_DYNAMIC_DISPATCH(QuantizePair)(result, first, first + count, width, act_out.bytes(step.arena, record),
                                           act_out.bf16);
    }
  }

  SlotRef plan_slot, gate, up, out, act_out;
  std::vector<ArenaRange> outputs;
  const ExpertProducts* products = nullptr; ///< who may make the gates instead
  std::vector<uint64_t> widths;
  std::vector<const uint16_t*> column_scales;
  artifact::Activation activation{};
  float alpha = 0, limit = 0;
  uint64_t choices = 0;

private:
  uint64_t blocks() const { return formats::ceil_div(gate.elements, kColumns); }
};

class MoeCombineCall final : public Call {
public:
  CallInfo info() const override { return {"moe_combine", choices, out.elements, 0}; }
  bool of_experts() const override { return true; }
  uint64_t items(const StepShape& shape) const override { return shape.count * blocks(); }
  uint64_t scratch_bytes() const override { return kColumns * sizeof(float); }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    const MoePlan plan(plan_slot, step.arena, shape, experts, choices);
    auto* sum = reinterpret_cast<float*>(scratch);
    for (uint64_t item = begin; item < end; ++item) {
      const uint64_t t = item / blocks(), token = shape.first + t;
      const uint64_t first = item % blocks() * kColumns, count = std::min(kColumns, out.elements - first);
      std::fill_n(sum, count, 0.0f);
      auto add = [&](const float* row, float weight) {
        HWY_DYNAMIC_DISPATCH(AddWeighed)(row + first, weight, count, sum);
      };
      for (uint64_t j = 0; j < choices; ++j) {
        if (step.missing_experts && !plan.has_pair(t * choices + j))
          continue;
        const uint64_t pair = plan.pair_of_choice(t * choices + j);
        add(pairs.f32(step.arena, shape.first * choices + pair), weights.f32(step.arena, token)[j]);
      }
      if (shared.present && !step.missing_experts) {
        const float gate = shared_gate.present ? 1 / (1 + std::exp(-shared_gate.f32(step.arena, token)[0])) : 1.0f;
        add(shared.f32(step.arena, token), gate);
      }
      if (residual.present && !step.missing_experts)
        add(residual.f32(step.arena, token), 1.0f);
      float* row = out.f32(step.arena, token) + first;
      std::memcpy(row, sum, count * sizeof(float));
      for (uint64_t i = count; i % 16 != 0; ++i)
        row[i] = 0;
    }
  }

  SlotRef plan_slot, weights, pairs, shared, shared_gate, residual, out;
  uint64_t experts = 0, choices = 0;

private:
  uint64_t blocks() const { return formats::ceil_div(out.elements, kColumns); }
};

} // namespace

Status resolve_moe_gather(const artifact::Call& op, const Resolver& resolver, ProgramFacts&, CallList& out) {
  constexpr const char* kWhat = "moe_gather";
  const artifact::MoeGatherOp& gather = *op.op_as_MoeGatherOp();
  auto call = std::make_unique<MoeGatherCall>();
  call->experts = gather.experts();
  const uint32_t target = gather.out() != kNoIndex ? gather.out() : gather.act_out();
  CORTIQ_ASSIGN_OR_RETURN(call->choices, moe_records(resolver, target, kWhat));
  CORTIQ_ASSIGN_OR_RETURN(call->columns, resolver.slot_elements(target, kWhat));
  CORTIQ_ASSIGN_OR_RETURN(call->plan_slot, moe_plan_slot(resolver, gather.plan(), call->experts, call->choices, kWhat));
  const bool scaled = gather.column_scales() && gather.column_scales()->size() != 0;
  if (scaled || gather.out() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->x, resolver.f32_slot(gather.x(), call->columns, kWhat));
  }
  if (!scaled && gather.act_out() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->act, resolver.q8_slot(gather.act(), call->columns, kWhat));
  }
  if (gather.out() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->out, moe_record_slot(resolver, gather.out(), artifact::BufferKind::F32, call->columns,
                                                       call->choices, kWhat));
  }
  for (const uint32_t slot : {gather.out(), gather.act_out()})
    if (slot != kNoIndex)
      call->written.push_back(arena_range(resolver, slot));
  if (gather.act_out() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->act_out, moe_record_slot(resolver, gather.act_out(), artifact::BufferKind::Q8Act,
                                                           call->columns, call->choices, kWhat));
    if (resolver.slots[gather.act_out()].elements != call->columns)
      return invalid("moe_gather: its outputs differ in length");
    if (!scaled && call->act.bf16 != call->act_out.bf16)
      return invalid("moe_gather: its activations are of two forms");
    call->act_bytes = resolver.q8_record_bytes(gather.act_out(), call->columns);
  }
  CORTIQ_ASSIGN_OR_RETURN(
      call->column_scales,
      moe_column_scales(resolver, gather.column_scales(), std::vector<uint64_t>(call->experts, call->columns), kWhat));
  out.push_back(std::move(call));
  return {};
}

Status resolve_moe_glu(const artifact::Call& op, const Resolver& resolver, ProgramFacts&, CallList& out) {
  constexpr const char* kWhat = "moe_glu";
  const artifact::MoeGluOp& glu = *op.op_as_MoeGluOp();
  auto call = std::make_unique<MoeGluCall>();
  call->widths.assign(glu.widths()->begin(), glu.widths()->end());
  CORTIQ_ASSIGN_OR_RETURN(call->choices, moe_records(resolver, glu.gate(), kWhat));
  CORTIQ_ASSIGN_OR_RETURN(call->plan_slot,
                          moe_plan_slot(resolver, glu.plan(), call->widths.size(), call->choices, kWhat));
  const uint64_t most = *std::max_element(call->widths.begin(), call->widths.end());
  if (*std::min_element(call->widths.begin(), call->widths.end()) == 0)
    return invalid("moe_glu: an expert has no width");
  CORTIQ_ASSIGN_OR_RETURN(call->gate,
                          moe_record_slot(resolver, glu.gate(), artifact::BufferKind::F32, most, call->choices, kWhat));
  CORTIQ_ASSIGN_OR_RETURN(call->up,
                          moe_record_slot(resolver, glu.up(), artifact::BufferKind::F32, most, call->choices, kWhat));
  if (glu.out() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(
        call->out, moe_record_slot(resolver, glu.out(), artifact::BufferKind::F32, most, call->choices, kWhat));
  }
  if (glu.act_out() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->act_out, moe_record_slot(resolver, glu.act_out(), artifact::BufferKind::Q8Act, most,
                                                           call->choices, kWhat));
  }
  for (const uint32_t slot : {glu.out(), glu.act_out()})
    if (slot != kNoIndex)
      call->outputs.push_back(arena_range(resolver, slot));
  if (glu.activation() > artifact::Activation::SwigluOai)
    return unsupported("moe_glu: activation " + std::to_string(static_cast<int>(glu.activation())) +
                       " is not known to this version");
  call->activation = glu.activation();
  call->alpha = glu.alpha();
  call->limit = glu.limit();
  if (call->activation > artifact::Activation::Relu && (!(call->alpha > 0) || !(call->limit >= 0)))
    return invalid("moe_glu: its activation needs two numbers");
  CORTIQ_ASSIGN_OR_RETURN(call->column_scales, moe_column_scales(resolver, glu.column_scales(), call->widths, kWhat));
  out.push_back(std::move(call));
  return {};
}

Status resolve_moe_combine(const artifact::Call& op, const Resolver& resolver, ProgramFacts&, CallList& out) {
  constexpr const char* kWhat = "moe_combine";
  const artifact::MoeCombineOp& combine = *op.op_as_MoeCombineOp();
  auto call = std::make_unique<MoeCombineCall>();
  call->experts = combine.experts();
  CORTIQ_ASSIGN_OR_RETURN(call->choices, resolver.slot_elements(combine.weights(), kWhat));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t n, resolver.slot_elements(combine.out(), kWhat));
  CORTIQ_ASSIGN_OR_RETURN(call->weights, resolver.f32_slot(combine.weights(), call->choices, kWhat));
  CORTIQ_ASSIGN_OR_RETURN(call->out, resolver.f32_slot(combine.out(), n, kWhat));
  CORTIQ_ASSIGN_OR_RETURN(call->plan_slot,
                          moe_plan_slot(resolver, combine.plan(), call->experts, call->choices, kWhat));
  CORTIQ_ASSIGN_OR_RETURN(
      call->pairs, moe_record_slot(resolver, combine.pairs(), artifact::BufferKind::F32, n, call->choices, kWhat));
  if (combine.shared() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->shared, resolver.f32_slot(combine.shared(), n, kWhat));
  }
  if (combine.shared_gate() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->shared_gate, resolver.f32_slot(combine.shared_gate(), 1, kWhat));
  }
  if (combine.residual() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->residual, resolver.f32_slot(combine.residual(), n, kWhat));
  }
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
#endif
