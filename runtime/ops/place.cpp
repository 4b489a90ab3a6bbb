// Columns in other places: brings what a model compiled for one task mask computes back to its full width.

#include "runtime/ops/op.h"
#include "runtime/ops/quantize.h"
#include "runtime/ops/result_slots.h"

namespace cortiq::runtime {
namespace {

class PlaceCall final : public Call {
public:
  CallInfo info() const override { return {"place", 1, from.size(), 0}; }
  uint64_t items(const StepShape& shape) const override { return shape.count; }
  uint64_t scratch_bytes() const override { return formats::f32_act_bytes(from.size()); }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    for (uint64_t token = shape.first + begin; token < shape.first + end; ++token) {
      const float* x = input.f32(step.arena, token);
      float* placed = out.present ? out.f32(step.arena, token) : reinterpret_cast<float*>(scratch);
      for (uint64_t i = 0; i < from.size(); ++i)
        placed[i] = from[i] < 0 ? 0 : x[from[i]];
      for (uint64_t i = from.size(); i % 16 != 0; ++i)
        placed[i] = 0;
      if (act_out.present)
        quantize_row(placed, from.size(), act_out.bytes(step.arena, token), act_out.bf16);
    }
  }

  SlotRef input, out, act_out;
  std::vector<int32_t> from;
};

} // namespace

Status resolve_place(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::PlaceOp& place = *op.op_as_PlaceOp();
  auto call = std::make_unique<PlaceCall>();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t n, resolver.slot_elements(place.input(), "place"));
  CORTIQ_ASSIGN_OR_RETURN(call->input, resolver.f32_slot(place.input(), n, "place"));
  call->from.assign(place.from()->begin(), place.from()->end());
  for (const int32_t from : call->from)
    if (from < -1 || (from >= 0 && static_cast<uint64_t>(from) >= n))
      return invalid("place: there is no column " + std::to_string(from) + " of " + std::to_string(n));
  CORTIQ_RETURN_IF_ERROR(resolve_results(resolver, place, call->from.size(), "place", call->out, call->act_out));
  if (!call->out.present && !call->act_out.present)
    return invalid("place: it has nothing to write");
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
