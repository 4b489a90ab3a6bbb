// Linear attention by the delta rule with a decay a channel. An item is a head over all tokens of the batch.

#include <algorithm>
#include <cmath>

#include "formats/checked_math.h"
#include "runtime/ops/delta.h"
#include "runtime/ops/op.h"

namespace cortiq::runtime {
namespace {

class KdaCall final : public Call {
public:
  CallInfo info() const override { return {"kda", heads * key_dim, value_dim, 0}; }
  uint64_t items(const StepShape&) const override { return heads; }
  bool by_sequence() const override { return true; }
  uint64_t scratch_bytes() const override { return DeltaScratch::bytes(key_dim) + key_dim * sizeof(float); }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    const DeltaScratch chunk(scratch, key_dim);
    auto* rates = reinterpret_cast<float*>(scratch + DeltaScratch::bytes(key_dim));
    for (uint64_t head = begin; head < end; ++head) {
      for (uint64_t i = 0; i < key_dim; ++i)
        rates[i] = std::exp(decay[decays == heads ? head : decays == key_dim ? i : head * key_dim + i]);
      run_delta_chunks(step, shape, state, head * key_dim * value_dim, key_dim * value_dim,
                       [&](uint64_t first, uint64_t count) { run_chunk(step, first, count, head, rates, chunk); });
    }
  }

  SlotRef q, k, v, f, b, gate, out;
  const float* decay = nullptr; ///< `decays` values: one a head, a channel, or each channel of each head
  uint64_t decays = 0;
  const float* dt_bias = nullptr;
  const float* norm = nullptr;
  uint32_t state = 0;
  uint64_t heads = 0, key_dim = 0, value_dim = 0;
  float eps = 0;
  std::optional<float> lower_bound;

private:
  void run_chunk(const StepContext& step, uint64_t first, uint64_t count, uint64_t head, const float* rates,
                 const DeltaScratch& scratch) const {
    const uint64_t key = head * key_dim, value = head * value_dim;
    DeltaToken tokens[kDeltaTokens];
    for (uint64_t t = 0; t < count; ++t) {
      auto row = [&](const SlotRef& slot) { return slot.f32(step.arena, first + t); };
      unit_vector(row(q) + key, key_dim, 1 / std::sqrt(static_cast<double>(key_dim)), scratch.query(t));
      unit_vector(row(k) + key, key_dim, 1, scratch.key(t));
      channel_decays(row(f) + key, dt_bias + key, rates, key_dim, lower_bound, scratch.decay(t));
      tokens[t] = {scratch.decay(t), scratch.query(t), scratch.key(t),
                   row(v) + value,   row(out) + value, static_cast<float>(sigmoid(row(b)[head]))};
    }
    delta_rule(step.states[state] + head * key_dim * value_dim, key_dim, value_dim, {tokens, count}, true,
               scratch.rest());
    for (uint64_t t = 0; t < count; ++t) {
      gated_norm(tokens[t].out, value_dim, norm, gate.f32(step.arena, first + t) + value, eps, false);
      if (head + 1 == heads) // the exact arm reads activations up to a multiple of 16
        std::fill_n(tokens[t].out + value_dim, (16 - out.elements % 16) % 16, 0.0f);
    }
  }
};

} // namespace

Status resolve_kda(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::KdaOp& kda = *op.op_as_KdaOp();
  const char* what = "kda";
  auto call = std::make_unique<KdaCall>();
  call->heads = kda.heads();
  call->key_dim = kda.key_dim();
  call->value_dim = kda.value_dim();
  CORTIQ_RETURN_IF_ERROR(check_sizes({call->heads, call->key_dim, call->value_dim}, what));
  const uint64_t keys = call->heads * call->key_dim, values = call->heads * call->value_dim;
  CORTIQ_ASSIGN_OR_RETURN(call->q, resolver.f32_slot(kda.q(), keys, what));
  CORTIQ_ASSIGN_OR_RETURN(call->k, resolver.f32_slot(kda.k(), keys, what));
  CORTIQ_ASSIGN_OR_RETURN(call->v, resolver.f32_slot(kda.v(), values, what));
  CORTIQ_ASSIGN_OR_RETURN(call->f, resolver.f32_slot(kda.f(), keys, what));
  CORTIQ_ASSIGN_OR_RETURN(call->b, resolver.f32_slot(kda.b(), call->heads, what));
  CORTIQ_ASSIGN_OR_RETURN(call->gate, resolver.f32_slot(kda.gate(), values, what));
  CORTIQ_ASSIGN_OR_RETURN(call->out, resolver.f32_slot(kda.out(), values, what));
  CORTIQ_ASSIGN_OR_RETURN(const WeightRef decay, resolver.weight(kda.decay(), what));
  call->decays = keys;
  if (decay.cols == call->heads || decay.cols == call->key_dim)
    call->decays = decay.cols;
  CORTIQ_ASSIGN_OR_RETURN(call->decay, resolver.vector(kda.decay(), call->decays, what));
  CORTIQ_ASSIGN_OR_RETURN(call->dt_bias, resolver.vector(kda.dt_bias(), keys, what));
  CORTIQ_ASSIGN_OR_RETURN(call->norm, resolver.vector(kda.norm(), call->value_dim, what));
  CORTIQ_ASSIGN_OR_RETURN(
      call->state, take_state(resolver, facts, kda.state(), {call->heads, call->key_dim, call->value_dim}, what));
  call->eps = kda.eps();
  if (kda.bounded())
    call->lower_bound = kda.lower_bound();
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
