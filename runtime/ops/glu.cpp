// Gated activation: a = activation(gate) * up, as f32, as q8a, or both.

#include <algorithm>

#include "formats/checked_math.h"
#include "runtime/ops/gate_stages.h"
#include "runtime/ops/op.h"
#include "runtime/ops/result_slots.h"
#include "runtime/overlay/overlay.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/ops/glu.cpp"
#include "hwy/foreach_target.h" // stands before every header that is compiled once a target

#include "runtime/ops/glu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {

void GluRange(const float* gate, const float* up, uint64_t count, artifact::Activation activation, float alpha,
              float limit, float* out) {
  glu_range(gate, up, count, activation, alpha, limit, out);
}

void QuantizeGlu(const float* x, uint64_t begin, uint64_t end, uint64_t k, uint8_t* record, bool bf16) {
  quantize_range(x, begin, end, k, record, bf16);
}

/// Columns [begin, begin + count), at most kGateRows, of `tokens` rows; where `out` or `record` is null, nobody wants
/// it.
void GluBlock(const float* gate, const float* up, uint64_t tokens, uint64_t begin, uint64_t count, uint64_t k,
              artifact::Activation activation, float alpha, float limit, uint8_t* out, uint64_t out_stride,
              uint8_t* record, uint64_t record_stride, bool bf16) {
  HWY_ALIGN float here[kGateRows];
  for (uint64_t t = 0; t < tokens; ++t, gate += kGateRows, up += kGateRows) {
    float* result = out ? reinterpret_cast<float*>(out + t * out_stride) + begin : here;
    glu_range(gate, up, count, activation, alpha, limit, result);
    if (record)
      quantize_range(result, begin, begin + count, k, record + t * record_stride, bf16);
  }
}

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cortiq::runtime {
namespace {

HWY_EXPORT(GluBlock);
HWY_EXPORT(GluRange);
HWY_EXPORT(QuantizeGlu);

constexpr uint64_t kColumns = 512; // an item's; a multiple of 32

class GluCall final : public Call, public BlockGates {
public:
  CallInfo info() const override { return {"glu", 1, gate.elements, 0}; }
  uint64_t items(const StepShape& shape) const override {
    return made_by && made_by->makes_gates(shape) ? 0 : shape.count * blocks();
  }
  uint64_t scratch_bytes() const override { return kColumns * sizeof(float); }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    for (uint64_t item = begin; item < end; ++item) {
      const uint64_t token = shape.first + item / blocks();
      const uint64_t first = item % blocks() * kColumns;
      const uint64_t count = std::min(kColumns, gate.elements - first);
      float* result = out.present ? out.f32(step.arena, token) + first : reinterpret_cast<float*>(scratch);
      HWY_DYNAMIC_DISPATCH(GluRange)
      (gate.f32(step.arena, token) + first, up.present ? up.f32(step.arena, token) + first : nullptr, count, activation,
       alpha, limit, result);
      cut_columns(step, mask, result, first, count);
      if (act_out.present)
        HWY_DYNAMIC_DISPATCH(QuantizeGlu)
      (result, first, first + count, gate.elements, act_out.bytes(step.arena, token), act_out.bf16);
    }
  }

  uint32_t gate_slot() const override { return gate_index; }
  uint32_t up_slot() const override { return up_index; }
  uint64_t width() const override { return gate.elements; }
  std::vector<SlotRef> written() const override {
    std::vector<SlotRef> slots;
    for (const SlotRef& slot : {out, act_out})
      if (slot.present)
        slots.push_back(slot);
    return slots;
  }
  void run_rows(const StepContext& step, uint64_t first, uint64_t tokens, uint64_t begin, uint64_t count,
                const float* gates, const float* ups) const override {
    HWY_DYNAMIC_DISPATCH(GluBlock)
    (gates, ups, tokens, begin, count, gate.elements, activation, alpha, limit,
     out.present ? out.bytes(step.arena, first) : nullptr, out.stride,
     act_out.present ? act_out.bytes(step.arena, first) : nullptr, act_out.stride, act_out.bf16);
  }
  void leave_to(const GatedProduct& product) override { made_by = &product; }

  SlotRef gate, up, out, act_out;
  uint32_t gate_index = kNoIndex, up_index = kNoIndex;
  const GatedProduct* made_by = nullptr;
  artifact::Activation activation{};
  float alpha = 0, limit = 0;

private:
  uint64_t blocks() const { return formats::ceil_div(gate.elements, kColumns); }
};

} // namespace

Status resolve_glu(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::GluOp& glu = *op.op_as_GluOp();
  auto call = std::make_unique<GluCall>();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t n, resolver.slot_elements(glu.gate(), "glu"));
  CORTIQ_ASSIGN_OR_RETURN(call->gate, resolver.f32_slot(glu.gate(), n, "glu"));
  call->gate_index = glu.gate();
  call->up_index = glu.up();
  if (glu.up() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->up, resolver.f32_slot(glu.up(), n, "glu"));
  }
  CORTIQ_RETURN_IF_ERROR(resolve_results(resolver, glu, n, "glu", call->out, call->act_out));
  if (glu.activation() > artifact::Activation::SwigluOai)
    return unsupported("glu: activation " + std::to_string(static_cast<int>(glu.activation())) +
                       " is not known to this version");
  call->activation = glu.activation();
  call->alpha = glu.alpha();
  call->limit = glu.limit();
  const bool numbers = call->activation > artifact::Activation::Relu;
  if (numbers && (glu.up() == kNoIndex || !(call->alpha > 0) || !(call->limit >= 0)))
    return invalid("glu: its activation needs both operands and two numbers");
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
#endif
