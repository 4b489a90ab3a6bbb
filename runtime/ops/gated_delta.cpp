// Linear attention by the gated delta rule. An item is a value head over all tokens of the batch.

#include <algorithm>
#include <cmath>

#include "formats/checked_math.h"
#include "runtime/ops/delta.h"
#include "runtime/ops/op.h"

namespace cortiq::runtime {
namespace {

class GatedDeltaCall final : public Call {
public:
  CallInfo info() const override { return {"gated_delta", value_heads * key_dim, value_dim, 0}; }
  uint64_t items(const StepShape&) const override { return value_heads; }
  bool by_sequence() const override { return true; }
  uint64_t scratch_bytes() const override { return DeltaScratch::bytes(key_dim); }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    for (uint64_t head = begin; head < end; ++head)
      run_delta_chunks(
          step, shape, state, head * key_dim * value_dim, key_dim * value_dim,
          [&](uint64_t first, uint64_t count) { run_chunk(step, first, count, head, DeltaScratch(scratch, key_dim)); });
  }

  SlotRef qkv, z, a, b, out;
  const float* decay = nullptr;
  const float* dt_bias = nullptr;
  const float* norm = nullptr;
  uint32_t state = 0;
  uint64_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
  float eps = 0;
  bool tiled = false, rates = false, sigmoid_gate = false;

private:
  void run_chunk(const StepContext& step, uint64_t first, uint64_t count, uint64_t head,
                 const DeltaScratch& scratch) const {
    const uint64_t key_head = tiled ? head % key_heads : head / (value_heads / key_heads);
    const double rate = rates ? decay[head] : -std::exp(static_cast<double>(decay[head]));
    DeltaToken tokens[kDeltaTokens];
    for (uint64_t t = 0; t < count; ++t) {
      const float* row = qkv.f32(step.arena, first + t);
      const float* keys = row + key_heads * key_dim;
      unit_vector(row + key_head * key_dim, key_dim, 1 / std::sqrt(static_cast<double>(key_dim)), scratch.query(t));
      unit_vector(keys + key_head * key_dim, key_dim, 1, scratch.key(t));
      const double step_size = softplus(static_cast<double>(a.f32(step.arena, first + t)[head]) + dt_bias[head]);
      std::fill_n(scratch.decay(t), key_dim, static_cast<float>(std::exp(rate * step_size)));
      tokens[t] = {scratch.decay(t),
                   scratch.query(t),
                   scratch.key(t),
                   keys + key_heads * key_dim + head * value_dim,
                   out.f32(step.arena, first + t) + head * value_dim,
                   static_cast<float>(sigmoid(b.f32(step.arena, first + t)[head]))};
    }
    delta_rule(step.states[state] + head * key_dim * value_dim, key_dim, value_dim, {tokens, count}, true,
               scratch.rest());
    for (uint64_t t = 0; t < count; ++t) {
      gated_norm(tokens[t].out, value_dim, norm, z.f32(step.arena, first + t) + head * value_dim, eps, !sigmoid_gate);
      if (head + 1 == value_heads) // the exact arm reads activations up to a multiple of 16
        std::fill_n(tokens[t].out + value_dim, (16 - out.elements % 16) % 16, 0.0f);
    }
  }
};

} // namespace

Status resolve_gated_delta(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::GatedDeltaOp& delta = *op.op_as_GatedDeltaOp();
  const char* what = "gated_delta";
  auto call = std::make_unique<GatedDeltaCall>();
  call->key_heads = delta.key_heads();
  call->value_heads = delta.value_heads();
  call->key_dim = delta.key_dim();
  call->value_dim = delta.value_dim();
  CORTIQ_RETURN_IF_ERROR(check_sizes({call->key_heads, call->value_heads, call->key_dim, call->value_dim}, what));
  if (call->value_heads % call->key_heads != 0)
    return invalid(std::string(what) + ": its value heads are not a multiple of its key heads");
  const uint64_t values = call->value_heads * call->value_dim;
  CORTIQ_ASSIGN_OR_RETURN(call->qkv,
                          resolver.f32_slot(delta.qkv(), 2 * call->key_heads * call->key_dim + values, what));
  CORTIQ_ASSIGN_OR_RETURN(call->z, resolver.f32_slot(delta.z(), values, what));
  CORTIQ_ASSIGN_OR_RETURN(call->a, resolver.f32_slot(delta.a(), call->value_heads, what));
  CORTIQ_ASSIGN_OR_RETURN(call->b, resolver.f32_slot(delta.b(), call->value_heads, what));
  CORTIQ_ASSIGN_OR_RETURN(call->out, resolver.f32_slot(delta.out(), values, what));
  CORTIQ_ASSIGN_OR_RETURN(call->decay, resolver.vector(delta.decay(), call->value_heads, what));
  CORTIQ_ASSIGN_OR_RETURN(call->dt_bias, resolver.vector(delta.dt_bias(), call->value_heads, what));
  CORTIQ_ASSIGN_OR_RETURN(call->norm, resolver.vector(delta.norm(), call->value_dim, what));
  CORTIQ_ASSIGN_OR_RETURN(call->state, take_state(resolver, facts, delta.state(),
                                                  {call->value_heads, call->key_dim, call->value_dim}, what));
  call->eps = delta.eps();
  call->tiled = delta.tiled();
  call->rates = delta.rates();
  call->sigmoid_gate = delta.sigmoid_gate();
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
