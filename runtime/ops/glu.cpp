// Gated activation: a = activation(gate) * up, as f32, as q8a, or both.

#include <algorithm>

#include "formats/checked_math.h"
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

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cortiq::runtime {
namespace {

HWY_EXPORT(GluRange);
HWY_EXPORT(QuantizeGlu);

constexpr uint64_t kColumns = 512; // an item's; a multiple of 32

class GluCall final : public Call {
public:
  CallInfo info() const override { return {"glu", 1, gate.elements, 0}; }
  uint64_t items(const StepShape& shape) const override { return shape.count * blocks(); }
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

  SlotRef gate, up, out, act_out;
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
