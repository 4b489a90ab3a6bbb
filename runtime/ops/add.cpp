// out = a + b * scale.

#include "formats/artifact/kernel_abi.h"
#include "runtime/ops/op.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/ops/add.cpp"
#include "hwy/foreach_target.h" // stands before every header that is compiled once a target

#include "runtime/ops/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {

void AddScaledRow(const float* a, const float* b, float scale, uint64_t count, float* out) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  const auto factor = hn::Set(d, scale);
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::Mul(hn::LoadU(d, b + i), factor)), d, out + i);
  for (; i < count; ++i)
    out[i] = a[i] + b[i] * scale;
  zero_tail(out, count);
}

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cortiq::runtime {
namespace {

HWY_EXPORT(AddScaledRow);

class AddCall final : public Call {
public:
  CallInfo info() const override { return {"add", 1, out.elements, 0}; }
  uint64_t items(const StepShape& shape) const override { return shape.count; }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end, uint8_t*) const override {
    for (uint64_t token = shape.first + begin; token < shape.first + end; ++token)
      HWY_DYNAMIC_DISPATCH(AddScaledRow)
    (a.f32(step.arena, token), b.f32(step.arena, token), scale, out.elements, out.f32(step.arena, token));
  }

  SlotRef a, b, out;
  float scale = 1;
};

} // namespace

Status resolve_add(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::AddOp& add = *op.op_as_AddOp();
  auto call = std::make_unique<AddCall>();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t n, resolver.slot_elements(add.out(), "add"));
  CORTIQ_ASSIGN_OR_RETURN(call->out, resolver.f32_slot(add.out(), n, "add"));
  CORTIQ_ASSIGN_OR_RETURN(call->a, resolver.f32_slot(add.a(), n, "add"));
  CORTIQ_ASSIGN_OR_RETURN(call->b, resolver.f32_slot(add.b(), n, "add"));
  call->scale = add.scale();
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
#endif
