// Root-mean-square norm with the residual addition before it and the quantization after it.

#include "runtime/ops/op.h"
#include "runtime/ops/quantize.h"
#include "runtime/ops/result_slots.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/ops/norm.cpp"
#include "hwy/foreach_target.h" // stands before every header that is compiled once a target

#include "runtime/ops/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {

/// out = a + b; rows may be the same.
void AddRows(const float* a, const float* b, uint64_t count, float* out) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  for (; i < count; ++i)
    out[i] = a[i] + b[i];
}

/// out = s - mean(s).
void CenterRow(const float* s, uint64_t count, float* out) {
  double sum = 0;
  for (uint64_t i = 0; i < count; ++i)
    sum += s[i];
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  const float mean = static_cast<float>(sum / static_cast<double>(count));
  const auto vmean = hn::Set(d, mean);
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::Sub(hn::LoadU(d, s + i), vmean), d, out + i);
  for (; i < count; ++i)
    out[i] = s[i] - mean;
}

/// out = s / sqrt(mean(s^2) + eps) * weight * scale; `weight` may be null. `out` may be `s`.
void NormRow(const float* s, const float* weight, uint64_t count, float eps, float scale, float* out) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  uint64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto a = hn::LoadU(d, s + i), b = hn::LoadU(d, s + i + lanes);
    sum0 = hn::MulAdd(a, a, sum0);
    sum1 = hn::MulAdd(b, b, sum1);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
  for (; i < count; ++i)
    sum += static_cast<double>(s[i]) * s[i];
  const float factor = static_cast<float>(scale / std::sqrt(sum / static_cast<double>(count) + eps));
  const auto vfactor = hn::Set(d, factor);
  i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto n = hn::Mul(hn::LoadU(d, s + i), vfactor);
    hn::StoreU(weight ? hn::Mul(n, hn::LoadU(d, weight + i)) : n, d, out + i);
  }
  for (; i < count; ++i)
    out[i] = s[i] * factor * (weight ? weight[i] : 1.0f);
  zero_tail(out, count);
}

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cortiq::runtime {
namespace {

HWY_EXPORT(AddRows);
HWY_EXPORT(CenterRow);
HWY_EXPORT(NormRow);

class NormCall final : public Call {
public:
  CallInfo info() const override { return {"norm", 1, input.elements, weight ? input.elements * 4 : 0}; }
  uint64_t items(const StepShape& shape) const override { return shape.count; }
  uint64_t scratch_bytes() const override { return 2 * formats::f32_act_bytes(input.elements); }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    const uint64_t n = input.elements;
    auto* sum_scratch = reinterpret_cast<float*>(scratch);
    auto* out_scratch = reinterpret_cast<float*>(scratch + formats::f32_act_bytes(n));
    for (uint64_t token = shape.first + begin; token < shape.first + end; ++token) {
      const float* s = input.f32(step.arena, token);
      if (add.present) {
        float* sum = sum_out.present ? sum_out.f32(step.arena, token) : sum_scratch;
        HWY_DYNAMIC_DISPATCH(AddRows)(s, add.f32(step.arena, token), n, sum);
        s = sum;
      } else if (sum_out.present && sum_out.offset != input.offset) {
        std::memcpy(sum_out.f32(step.arena, token), s, n * sizeof(float));
      }
      float* normed = out.present ? out.f32(step.arena, token) : out_scratch;
      if (out.present || act_out.present) {
        if (centered) {
          HWY_DYNAMIC_DISPATCH(CenterRow)(s, n, normed);
          s = normed;
        }
        HWY_DYNAMIC_DISPATCH(NormRow)(s, weight, n, eps, scale, normed);
        if (bias)
          HWY_DYNAMIC_DISPATCH(AddRows)(normed, bias, n, normed);
      }
      if (act_out.present)
        quantize_row(normed, n, act_out.bytes(step.arena, token), act_out.bf16);
    }
  }

  SlotRef input, add, sum_out, out, act_out;
  const float* weight = nullptr;
  const float* bias = nullptr;
  float eps = 0, scale = 1;
  bool centered = false;
};

} // namespace

Status resolve_norm(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::NormOp& norm = *op.op_as_NormOp();
  auto call = std::make_unique<NormCall>();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t n, resolver.slot_elements(norm.input(), "norm"));
  CORTIQ_ASSIGN_OR_RETURN(call->input, resolver.f32_slot(norm.input(), n, "norm"));
  if (norm.add() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->add, resolver.f32_slot(norm.add(), n, "norm"));
  }
  if (norm.sum_out() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->sum_out, resolver.f32_slot(norm.sum_out(), n, "norm"));
  }
  CORTIQ_RETURN_IF_ERROR(resolve_results(resolver, norm, n, "norm", call->out, call->act_out));
  if (norm.weight() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->weight, resolver.vector(norm.weight(), n, "norm"));
  }
  if (norm.bias() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->bias, resolver.vector(norm.bias(), n, "norm"));
  }
  call->centered = norm.centered();
  call->eps = norm.eps();
  call->scale = norm.scale();
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
#endif
