// Heads put together from two parts: out[head] = [a[head] | b[head]].

#include <cstring>

#include "runtime/ops/op.h"

namespace cortiq::runtime {
namespace {

class ConcatHeadsCall final : public Call {
public:
  CallInfo info() const override { return {"concat_heads", heads, out.elements, 0}; }
  uint64_t items(const StepShape& shape) const override { return shape.count; }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end, uint8_t*) const override {
    const uint64_t first = shared ? a.elements : a.elements / heads, second = b.elements / heads;
    for (uint64_t token = shape.first + begin; token < shape.first + end; ++token) {
      const float* from_a = a.f32(step.arena, token);
      const float* from_b = b.f32(step.arena, token);
      float* to = out.f32(step.arena, token);
      for (uint64_t head = 0; head < heads; ++head, to += first + second) {
        std::memcpy(to, from_a + (shared ? 0 : head * first), first * sizeof(float));
        std::memcpy(to + first, from_b + head * second, second * sizeof(float));
      }
    }
  }

  SlotRef a, b, out;
  uint64_t heads = 0;
  bool shared = false;
};

} // namespace

Status resolve_concat_heads(const artifact::Call& op, const Resolver& resolver, ProgramFacts&, CallList& out) {
  const artifact::ConcatHeadsOp& concat = *op.op_as_ConcatHeadsOp();
  auto call = std::make_unique<ConcatHeadsCall>();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t a, resolver.slot_elements(concat.a(), "concat_heads"));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t b, resolver.slot_elements(concat.b(), "concat_heads"));
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t n, resolver.slot_elements(concat.out(), "concat_heads"));
  CORTIQ_ASSIGN_OR_RETURN(call->a, resolver.f32_slot(concat.a(), a, "concat_heads"));
  CORTIQ_ASSIGN_OR_RETURN(call->b, resolver.f32_slot(concat.b(), b, "concat_heads"));
  CORTIQ_ASSIGN_OR_RETURN(call->out, resolver.f32_slot(concat.out(), n, "concat_heads"));
  call->heads = concat.heads();
  const uint64_t heads = call->heads;
  // All three are below 2^32 elements, so nothing overflows.
  call->shared = heads != 0 && a * heads + b == n;
  if (heads == 0 || b % heads != 0 || (!call->shared && (a % heads != 0 || a + b != n)))
    return invalid("concat_heads: " + std::to_string(a) + " and " + std::to_string(b) + " elements do not make " +
                   std::to_string(heads) + " heads of " + std::to_string(n) + " together");
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
