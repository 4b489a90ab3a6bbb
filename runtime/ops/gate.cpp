// a = x * function(g): a gate for the whole token, one a head or group, or one a feature. As f32, as q8a, or both.

#include "formats/artifact/kernel_abi.h"
#include "runtime/ops/op.h"
#include "runtime/ops/quantize.h"
#include "runtime/ops/result_slots.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/ops/gate.cpp"
#include "hwy/foreach_target.h" // stands before every header that is compiled once a target

#include "hwy/contrib/math/math-inl.h"
#include "runtime/ops/logistic-inl.h"
#include "runtime/ops/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {

template <class V>
HWY_INLINE V GateOf(F32 d, V g, artifact::GateFunction function) {
  if (function == artifact::GateFunction::Sigmoid)
    return hn::Div(hn::Set(d, 1.0f), hn::Add(hn::Set(d, 1.0f), ExpNegative(d, g)));
  return hn::Add(hn::Max(g, hn::Zero(d)), hn::Log1p(d, hn::Exp(d, hn::Neg(hn::Abs(g)))));
}

/// `group` features a gate; rows are readable and writable to a multiple of 16, what stands there is zeroed at the end.
void GateRow(const float* x, const float* g, uint64_t gates, uint64_t group, artifact::GateFunction function,
             float* out) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  if (group == 1) {
    for (uint64_t i = 0; i < gates; i += lanes)
      hn::StoreU(hn::Mul(hn::LoadU(d, x + i), GateOf(d, hn::LoadU(d, g + i), function)), d, out + i);
  } else {
    for (uint64_t j = 0; j < gates; ++j) {
      const auto gate = GateOf(d, hn::Set(d, g[j]), function);
      uint64_t i = j * group;
      for (; i + lanes <= (j + 1) * group; i += lanes)
        hn::StoreU(hn::Mul(hn::LoadU(d, x + i), gate), d, out + i);
      for (; i < (j + 1) * group; ++i)
        out[i] = x[i] * hn::GetLane(gate);
    }
  }
  zero_tail(out, gates * group);
}

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cortiq::runtime {
namespace {

HWY_EXPORT(GateRow);

class GateCall final : public Call {
public:
  CallInfo info() const override { return {"gate", 1, x.elements, 0}; }
  uint64_t items(const StepShape& shape) const override { return shape.count; }
  uint64_t scratch_bytes() const override { return formats::f32_act_bytes(x.elements); }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    for (uint64_t token = shape.first + begin; token < shape.first + end; ++token) {
      float* result = out.present ? out.f32(step.arena, token) : reinterpret_cast<float*>(scratch);
      HWY_DYNAMIC_DISPATCH(GateRow)
      (x.f32(step.arena, token), g.f32(step.arena, token), g.elements, x.elements / g.elements, function, result);
      if (act_out.present)
        quantize_row(result, x.elements, act_out.bytes(step.arena, token), act_out.bf16);
    }
  }

  SlotRef x, g, out, act_out;
  artifact::GateFunction function{};
};

} // namespace

Status resolve_gate(const artifact::Call& op, const Resolver& resolver, ProgramFacts&, CallList& out) {
  const artifact::GateOp& gate = *op.op_as_GateOp();
  auto call = std::make_unique<GateCall>();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t n, resolver.slot_elements(gate.x(), "gate"));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t gates, resolver.slot_elements(gate.g(), "gate"));
  CORTIQ_ASSIGN_OR_RETURN(call->x, resolver.f32_slot(gate.x(), n, "gate"));
  CORTIQ_ASSIGN_OR_RETURN(call->g, resolver.f32_slot(gate.g(), gates, "gate"));
  if (n % gates != 0)
    return invalid("gate: " + std::to_string(gates) + " gates do not divide " + std::to_string(n) + " values");
  CORTIQ_RETURN_IF_ERROR(resolve_results(resolver, gate, n, "gate", call->out, call->act_out));
  if (gate.function() > artifact::GateFunction::Softplus)
    return unsupported("gate: function " + std::to_string(static_cast<int>(gate.function())) +
                       " is not known to this version");
  call->function = gate.function();
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
#endif
