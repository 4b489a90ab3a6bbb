// Before attention: norms of each query and key head, rotary positions, and the append to the layer's cache.

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/executor/kv_blocks.h"
#include "runtime/ops/op.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/ops/attention_prep.cpp"
#include "hwy/foreach_target.h" // stands before every header that is compiled once a target

#include "runtime/ops/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {

/// x = x / sqrt(mean(x^2) + eps) [* weight].
void NormHead(float* x, const float* weight, uint64_t dim, float eps) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  auto sums = hn::Zero(d);
  uint64_t i = 0;
  for (; i + lanes <= dim; i += lanes)
    sums = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, x + i), sums);
  double sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < dim; ++i)
    sum += static_cast<double>(x[i]) * x[i];
  const float factor = static_cast<float>(1.0 / std::sqrt(sum / static_cast<double>(dim) + eps));
  for (i = 0; i < dim; ++i)
    x[i] = x[i] * factor * (weight ? weight[i] : 1.0f);
}

/// Rotates the pairs (x[i], x[i + pairs]).
void RotateHead(float* x, const float* cosines, const float* sines, uint64_t pairs) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  uint64_t i = 0;
  for (; i + lanes <= pairs; i += lanes) {
    const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + pairs);
    const auto c = hn::LoadU(d, cosines + i), s = hn::LoadU(d, sines + i);
    hn::StoreU(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), d, x + i);
    hn::StoreU(hn::Add(hn::Mul(b, c), hn::Mul(a, s)), d, x + i + pairs);
  }
  for (; i < pairs; ++i) {
    const float a = x[i], b = x[i + pairs];
    x[i] = a * cosines[i] - b * sines[i];
    x[i + pairs] = b * cosines[i] + a * sines[i];
  }
}

/// Converts `count` values, a multiple of 16, to f16; false when one of them does not fit.
bool ToF16(const float* x, uint64_t count, uint16_t* out) {
  const F32 d;
  const hn::Rebind<hwy::float16_t, F32> dh;
  const auto limit = hn::Set(d, 65504.0f);
  bool fits = true;
  for (uint64_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, x + i);
    fits = fits && hn::AllTrue(d, hn::Le(hn::Abs(v), limit)); // false for NaN too
    hn::StoreU(hn::DemoteTo(dh, v), dh, reinterpret_cast<hwy::float16_t*>(out) + i);
  }
  return fits;
}

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cortiq::runtime {
namespace {

HWY_EXPORT(NormHead);
HWY_EXPORT(RotateHead);
HWY_EXPORT(ToF16);

uint64_t padded(uint64_t count) {
  return (count + 15) / 16 * 16;
}

class AttentionPrepCall final : public Call {
public:
  CallInfo info() const override { return {"attention_prep", heads + 2 * kv.kv_heads, kv.k_dim, 0}; }
  /// One a token and KV head, with the queries that read it: the sixteen lanes of a position lie in as many lines of
  /// the cache as a key has dimensions, too many for one thread to fetch while the others wait.
  uint64_t items(const StepShape& shape) const override { return shape.count * kv.kv_heads; }
  bool by_sequence() const override { return true; }
  uint64_t scratch_bytes() const override { return 6 * padded(std::max(kv.k_dim, kv.v_dim)); }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    const uint64_t group = heads / kv.kv_heads;
    Warmth warmth;
    for (uint64_t item = begin; item < end; ++item) {
      const uint64_t token = shape.first + item / kv.kv_heads, head = item % kv.kv_heads;
      const uint64_t first = head * group * kv.k_dim, count = group * kv.k_dim;
      float* query = q.f32(step.arena, token) + first;
      if (q_still.present)
        std::memcpy(q_still.f32(step.arena, token) + first, query, count * sizeof(float));
      for (uint64_t i = 0; i < group; ++i)
        turn(step, token, query + i * kv.k_dim, q_norm);
      if (temperature_scale != 0)
        warm(query, count, warmth.at(*this, step.position + token));
      float* key = k.f32(step.arena, token) + head * kv.k_dim;
      float* value = v.f32(step.arena, token) + head * kv.v_dim;
      turn(step, token, key, k_norm);
      if (v_norm)
        HWY_DYNAMIC_DISPATCH(NormHead)(value, nullptr, kv.v_dim, eps);
      if (!append(step, step.position + token, head, key, value, scratch))
        step.kv_overflow->store(layer + 1, std::memory_order_relaxed);
    }
  }

  SlotRef q, k, v, q_still;
  KvShape kv;
  uint32_t layer = 0;
  uint64_t heads = 0;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  float eps = 0;
  bool norm_after_rope = false, v_norm = false;
  uint32_t rope = kNoIndex;
  uint64_t pairs = 0;

  float temperature_length = 0, temperature_scale = 0;

private:
  /// What queries count for at a position. Neighbours share it, heads of a token all the more: it is computed where a
  /// stretch of temperature_length positions begins.
  struct Warmth {
    double steps = 0;
    float factor = 1;
    float at(const AttentionPrepCall& call, uint64_t position) {
      const double now = std::floor(static_cast<double>(position) / call.temperature_length);
      if (now != steps) {
        steps = now;
        factor = static_cast<float>(1 + call.temperature_scale * std::log1p(steps));
      }
      return factor;
    }
  };

  static void warm(float* query, uint64_t count, float factor) {
    for (uint64_t i = 0; i < count; ++i)
      query[i] *= factor;
  }

  void turn(const StepContext& step, uint64_t token, float* head, const float* norm) const {
    if (norm && !norm_after_rope)
      HWY_DYNAMIC_DISPATCH(NormHead)(head, norm, kv.k_dim, eps);
    if (rope != kNoIndex)
      HWY_DYNAMIC_DISPATCH(RotateHead)
    (head, step.rope_cos[rope] + token * pairs, step.rope_sin[rope] + token * pairs, pairs);
    if (norm && norm_after_rope)
      HWY_DYNAMIC_DISPATCH(NormHead)(head, norm, kv.k_dim, eps);
  }

  /// Stores one head's key and value at `position`; false when a value does not fit the cache.
  bool append(const StepContext& step, uint64_t position, uint64_t head, const float* key, const float* value,
              uint8_t* scratch) const {
    const KvBlocks cache(step, kv, layer, head);
    const uint64_t block = cache.place(position / kPositionBlock), place = position % kPositionBlock;
    uint8_t* key_group = cache.keys_at(block) + place / 16 * kv.key_group_bytes(step.kv_type);
    uint8_t* value_row = cache.values_at(block) + place * kv.value_row_bytes(step.kv_type);
    if (step.kv_type == KvType::kQ8)
      return append_q8(key_group, value_row, place % 16, key, value);
    if (step.kv_type == KvType::kF32) {
      auto* keys = reinterpret_cast<float*>(key_group) + place % 16;
      for (uint64_t i = 0; i < kv.k_dim; ++i)
        keys[16 * i] = key[i];
      std::memcpy(value_row, value, kv.v_dim * sizeof(float));
      return true;
    }
    auto* wide = reinterpret_cast<float*>(scratch); // the row again, with zeros behind it
    auto* half = reinterpret_cast<uint16_t*>(wide + padded(std::max(kv.k_dim, kv.v_dim)));
    bool fits = to_f16(key, kv.k_dim, wide, half);
    auto* keys = reinterpret_cast<uint16_t*>(key_group) + place % 16;
    for (uint64_t i = 0; i < kv.k_dim; ++i)
      keys[16 * i] = half[i];
    fits = to_f16(value, kv.v_dim, wide, half) && fits;
    std::memcpy(value_row, half, kv.v_dim * sizeof(uint16_t));
    return fits;
  }

  bool append_q8(uint8_t* key_group, uint8_t* value_row, uint64_t lane, const float* key, const float* value) const {
    bool fits = true;
    for (uint64_t first = 0; first < kv.k_dim; first += kKvGroup) {
      auto* codes = reinterpret_cast<int8_t*>(key_group + first / kKvGroup * (kKvGroup * 16 + 16 * sizeof(float)));
      auto* factors = reinterpret_cast<float*>(codes + kKvGroup * 16);
      fits = to_q8(key + first, std::min(kKvGroup, kv.k_dim - first), codes + lane, 16, factors[lane]) && fits;
    }
    auto* factors = reinterpret_cast<float*>(value_row);
    auto* codes = reinterpret_cast<int8_t*>(value_row + kv.value_row_bytes(KvType::kQ8) - kv.v_stride());
    for (uint64_t first = 0; first < kv.v_dim; first += kKvGroup)
      fits = to_q8(value + first, std::min(kKvGroup, kv.v_dim - first), codes + first, 1, factors[first / kKvGroup]) &&
             fits;
    return fits;
  }

  /// One group of codes, `stride` apart, and their factor; false when a value is not finite.
  static bool to_q8(const float* x, uint64_t count, int8_t* codes, uint64_t stride, float& factor) {
    float largest = 0, poison = 0; // the latter becomes NaN when a value is not finite
    for (uint64_t i = 0; i < count; ++i) {
      largest = std::max(largest, std::abs(x[i]));
      poison += x[i] * 0.0f;
    }
    factor = largest / 127.0f;
    if (poison != poison || !(largest <= std::numeric_limits<float>::max()))
      return false;
    const float inverse = largest > 0 ? 127.0f / largest : 0.0f;
    for (uint64_t i = 0; i < count; ++i) {
      const float code = std::nearbyint(x[i] * std::min(inverse, std::numeric_limits<float>::max()));
      codes[i * stride] = static_cast<int8_t>(std::clamp(code, -127.0f, 127.0f)); // a tiny largest overflows
    }
    return true;
  }

  static bool to_f16(const float* x, uint64_t count, float* wide, uint16_t* half) {
    std::memcpy(wide, x, count * sizeof(float));
    std::fill(wide + count, wide + padded(count), 0.0f);
    return HWY_DYNAMIC_DISPATCH(ToF16)(wide, padded(count), half);
  }
};

} // namespace

Status resolve_attention_prep(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::AttentionPrepOp& prep = *op.op_as_AttentionPrepOp();
  auto call = std::make_unique<AttentionPrepCall>();
  if (prep.layer() >= facts.kv_layers.size())
    return invalid("attention_prep: there is no cache layer " + std::to_string(prep.layer()));
  const KvShape kv = call->kv = facts.kv_layers[prep.layer()];
  call->layer = prep.layer();
  call->heads = prep.heads();
  if (prep.heads() == 0 || prep.heads() % kv.kv_heads != 0 || prep.head_dim() != kv.k_dim)
    return invalid("attention_prep: " + std::to_string(prep.heads()) + " heads of " + std::to_string(prep.head_dim()) +
                   " do not fit the cache of layer " + std::to_string(prep.layer()));
  CORTIQ_ASSIGN_OR_RETURN(call->q, resolver.f32_columns(prep.q(), prep.q_column(), call->heads * kv.k_dim, "queries"));
  CORTIQ_ASSIGN_OR_RETURN(call->k, resolver.f32_columns(prep.k(), prep.k_column(), kv.kv_heads * kv.k_dim, "keys"));
  CORTIQ_ASSIGN_OR_RETURN(call->v, resolver.f32_columns(prep.v(), prep.v_column(), kv.kv_heads * kv.v_dim, "values"));
  if (prep.q_norm() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->q_norm, resolver.vector(prep.q_norm(), kv.k_dim, "query norm"));
  }
  if (prep.k_norm() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->k_norm, resolver.vector(prep.k_norm(), kv.k_dim, "key norm"));
  }
  if (prep.rope() != kNoIndex) {
    if (prep.rope() >= facts.rope_tables.size())
      return invalid("attention_prep: there is no rope table " + std::to_string(prep.rope()));
    call->pairs = facts.rope_tables[prep.rope()].inverse_frequencies.size();
    if (2 * call->pairs > kv.k_dim)
      return invalid("attention_prep: rope table " + std::to_string(prep.rope()) + " is longer than half a head");
  }
  call->rope = prep.rope();
  call->eps = prep.norm_eps();
  call->norm_after_rope = prep.norm_after_rope();
  call->v_norm = prep.v_norm();
  if (prep.q_still() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->q_still, resolver.f32_slot(prep.q_still(), call->heads * kv.k_dim, "still queries"));
  }
  call->temperature_length = prep.temperature_length();
  call->temperature_scale = prep.temperature_scale();
  if (call->temperature_scale != 0 && !(call->temperature_length > 0))
    return invalid("attention_prep: the temperature of the queries has no length");
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
#endif
