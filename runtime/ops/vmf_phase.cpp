// Linear attention on phases. An item is a head over all tokens of the batch.

#include <algorithm>
#include <cmath>

#include "formats/checked_math.h"
#include "runtime/ops/delta.h"
#include "runtime/ops/op.h"

namespace cortiq::runtime {
namespace {

class VmfPhaseCall final : public Call {
public:
  CallInfo info() const override { return {"vmf_phase", heads * 2 * phases, value_dim, 0}; }
  uint64_t items(const StepShape&) const override { return heads; }
  bool by_sequence() const override { return true; }
  uint64_t scratch_bytes() const override { return DeltaScratch::bytes(2 * phases); }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    for (uint64_t head = begin; head < end; ++head)
      run_delta_chunks(step, shape, state, head * 2 * phases * value_dim, 2 * phases * value_dim,
                       [&](uint64_t first, uint64_t count) {
                         run_chunk(step, first, count, head, DeltaScratch(scratch, 2 * phases));
                       });
  }

  SlotRef theta_q, theta_k, v, gate, out;
  const float* decay = nullptr;
  uint32_t state = 0;
  uint64_t heads = 0, phases = 0, value_dim = 0;
  bool delta = false;

private:
  void run_chunk(const StepContext& step, uint64_t first, uint64_t count, uint64_t head,
                 const DeltaScratch& scratch) const {
    const uint64_t rows = 2 * phases;
    for (uint64_t i = 0; i < rows; ++i) // the same for every token
      scratch.decay(0)[i] = static_cast<float>(std::exp(-std::exp(static_cast<double>(decay[head * rows + i]))));
    DeltaToken tokens[kDeltaTokens];
    for (uint64_t t = 0; t < count; ++t) {
      auto row = [&](const SlotRef& slot) { return slot.f32(step.arena, first + t); };
      write_features(row(theta_q) + head * phases, scratch.query(t));
      write_features(row(theta_k) + head * phases, scratch.key(t));
      tokens[t] = {scratch.decay(0),
                   scratch.query(t),
                   scratch.key(t),
                   row(v) + head * value_dim,
                   row(out) + head * value_dim,
                   gate.present ? static_cast<float>(sigmoid(row(gate)[head])) : 1.0f};
    }
    delta_rule(step.states[state] + head * rows * value_dim, rows, value_dim, {tokens, count}, delta, scratch.rest());
    if (head + 1 == heads) // the exact arm reads activations up to a multiple of 16
      for (uint64_t t = 0; t < count; ++t)
        std::fill_n(tokens[t].out + value_dim, (16 - out.elements % 16) % 16, 0.0f);
  }

  /// [cos theta ; sin theta], of length 1 with the correction.
  void write_features(const float* theta, float* phi) const {
    const double factor = delta ? 1 / std::sqrt(static_cast<double>(phases)) : 1;
    for (uint64_t i = 0; i < phases; ++i) {
      phi[i] = static_cast<float>(factor * std::cos(static_cast<double>(theta[i])));
      phi[phases + i] = static_cast<float>(factor * std::sin(static_cast<double>(theta[i])));
    }
  }
};

} // namespace

Status resolve_vmf_phase(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::VmfPhaseOp& vmf = *op.op_as_VmfPhaseOp();
  const char* what = "vmf_phase";
  auto call = std::make_unique<VmfPhaseCall>();
  call->heads = vmf.heads();
  call->phases = vmf.phases();
  call->value_dim = vmf.value_dim();
  CORTIQ_RETURN_IF_ERROR(check_sizes({call->heads, call->phases, call->value_dim}, what));
  const uint64_t angles = call->heads * call->phases, values = call->heads * call->value_dim;
  CORTIQ_ASSIGN_OR_RETURN(call->theta_q, resolver.f32_slot(vmf.theta_q(), angles, what));
  CORTIQ_ASSIGN_OR_RETURN(call->theta_k, resolver.f32_slot(vmf.theta_k(), angles, what));
  CORTIQ_ASSIGN_OR_RETURN(call->v, resolver.f32_slot(vmf.v(), values, what));
  if (vmf.gate() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->gate, resolver.f32_slot(vmf.gate(), call->heads, what));
  }
  CORTIQ_ASSIGN_OR_RETURN(call->out, resolver.f32_slot(vmf.out(), values, what));
  CORTIQ_ASSIGN_OR_RETURN(call->decay, resolver.vector(vmf.decay(), 2 * angles, what));
  CORTIQ_ASSIGN_OR_RETURN(
      call->state, take_state(resolver, facts, vmf.state(), {call->heads, 2 * call->phases, call->value_dim}, what));
  call->delta = vmf.delta();
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
