// A layer's end: what it computed, or what it was given where the mask in force skips it.

#include <cstring>

#include "runtime/ops/op.h"
#include "runtime/overlay/overlay.h"

namespace cortiq::runtime {
namespace {

class LayerGateCall final : public Call {
public:
  CallInfo info() const override { return {"layer_gate", 1, out.elements, 0}; }
  uint64_t items(const StepShape& shape) const override { return shape.count; }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end, uint8_t*) const override {
    const bool open = !step.overlay || !step.overlay->mask || step.overlay->mask->gate(layer);
    const SlotRef& source = open ? after : before;
    for (uint64_t token = shape.first + begin; token < shape.first + end; ++token)
      std::memcpy(out.f32(step.arena, token), source.f32(step.arena, token), out.elements * sizeof(float));
  }

  SlotRef before, after, out;
  uint32_t layer = 0;
};

} // namespace

Status resolve_layer_gate(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::LayerGateOp& gate = *op.op_as_LayerGateOp();
  auto call = std::make_unique<LayerGateCall>();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t n, resolver.slot_elements(gate.out(), "layer gate"));
  CORTIQ_ASSIGN_OR_RETURN(call->before, resolver.f32_slot(gate.before(), n, "layer gate"));
  CORTIQ_ASSIGN_OR_RETURN(call->after, resolver.f32_slot(gate.after(), n, "layer gate"));
  CORTIQ_ASSIGN_OR_RETURN(call->out, resolver.f32_slot(gate.out(), n, "layer gate"));
  call->layer = gate.layer();
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
