// Adds the rows of the residual stream up where somebody asks for their mean.

#include "runtime/ops/op.h"

namespace cortiq::runtime {
namespace {

class TapCall final : public Call {
public:
  CallInfo info() const override { return {"tap", 1, input.elements, 0}; }
  uint64_t items(const StepShape&) const override { return 1; }

  void run(const StepContext& step, const StepShape& shape, uint64_t, uint64_t, uint8_t*) const override {
    if (!step.taps)
      return;
    double* sum = step.taps[index];
    for (uint64_t token = shape.first; token < shape.first + shape.count; ++token) {
      const float* row = input.f32(step.arena, token);
      for (uint64_t i = 0; i < input.elements; ++i)
        sum[i] += row[i];
    }
  }

  SlotRef input;
  size_t index = 0;
};

} // namespace

Status resolve_tap(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::TapOp& tap = *op.op_as_TapOp();
  auto call = std::make_unique<TapCall>();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t n, resolver.slot_elements(tap.input(), "tap"));
  CORTIQ_ASSIGN_OR_RETURN(call->input, resolver.f32_slot(tap.input(), n, "tap"));
  call->index = facts.taps.size();
  facts.taps.push_back({tap.layer(), n});
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
