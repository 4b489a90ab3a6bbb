// Last step of the head: logits = cap * tanh(multiplier * x / cap), in place.

#include <algorithm>

#include "formats/checked_math.h"
#include "runtime/ops/op.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/ops/logits.cpp"
#include "hwy/foreach_target.h" // stands before every header that is compiled once a target

#include "hwy/contrib/math/math-inl.h"
#include "runtime/ops/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {

/// `x` is writable to a multiple of 16.
void ScaleAndCap(float* x, uint64_t count, float multiplier, float cap) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  const auto scale = hn::Set(d, cap > 0 ? multiplier / cap : multiplier);
  const auto limit = hn::Set(d, cap);
  for (uint64_t i = 0; i < count; i += lanes) {
    auto v = hn::Mul(hn::LoadU(d, x + i), scale);
    if (cap > 0)
      v = hn::Mul(limit, hn::Tanh(d, v));
    hn::StoreU(v, d, x + i);
  }
}

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cortiq::runtime {
namespace {

HWY_EXPORT(ScaleAndCap);

constexpr uint64_t kColumns = 8192; // an item's; a multiple of 16

class LogitsCall final : public Call {
public:
  CallInfo info() const override { return {"logits", 1, slot.elements, 0}; }
  uint64_t items(const StepShape& shape) const override { return shape.count * blocks(); }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end, uint8_t*) const override {
    if (multiplier == 1 && !(softcap > 0))
      return;
    for (uint64_t item = begin; item < end; ++item) {
      const uint64_t first = item % blocks() * kColumns;
      HWY_DYNAMIC_DISPATCH(ScaleAndCap)
      (slot.f32(step.arena, shape.first + item / blocks()) + first, std::min(kColumns, slot.elements - first),
       multiplier, softcap);
    }
  }

  SlotRef slot;
  float multiplier = 1, softcap = 0;

private:
  uint64_t blocks() const { return formats::ceil_div(slot.elements, kColumns); }
};

} // namespace

Status resolve_logits(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::LogitsOp& logits = *op.op_as_LogitsOp();
  auto call = std::make_unique<LogitsCall>();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t n, resolver.slot_elements(logits.input(), "logits"));
  CORTIQ_ASSIGN_OR_RETURN(call->slot, resolver.f32_slot(logits.input(), n, "logits"));
  call->multiplier = logits.multiplier();
  call->softcap = logits.softcap();
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
#endif
