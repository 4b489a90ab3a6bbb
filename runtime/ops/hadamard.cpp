// The Walsh-Hadamard transform of blocks of a row, with a sign a column before or behind it. As f32, as q8a, or both.

#include <bit>

#include "formats/artifact/kernel_abi.h"
#include "runtime/ops/op.h"
#include "runtime/ops/quantize.h"
#include "runtime/ops/result_slots.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/ops/hadamard.cpp"
#include "hwy/foreach_target.h" // stands before every header that is compiled once a target

#include "runtime/ops/quantize-inl.h"

#ifndef CORTIQ_RUNTIME_OPS_HADAMARD_ONCE
#define CORTIQ_RUNTIME_OPS_HADAMARD_ONCE
namespace cortiq::runtime {

struct HadamardShape {
  uint64_t width, block;
  bool inverse, half;
};

} // namespace cortiq::runtime
#endif

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {

/// Rounds to the nearest f16, ties to even.
void RoundToHalf(float* x, uint64_t count) {
  const F32 d;
  const hn::Rebind<hwy::float16_t, F32> dh;
  for (uint64_t i = 0; i < count; i += hn::Lanes(d)) // rows are padded to 16
    hn::StoreU(hn::PromoteTo(d, hn::DemoteTo(dh, hn::LoadU(d, x + i))), d, x + i);
}

/// One block, not scaled: the Hadamard matrix in Sylvester's order.
void Transform(float* x, uint64_t block) {
  const F32 d;
  for (uint64_t half = 1; half < block; half *= 2)
    for (uint64_t start = 0; start < block; start += 2 * half) {
      float *low = x + start, *high = low + half;
      uint64_t i = 0;
      for (; i + hn::Lanes(d) <= half; i += hn::Lanes(d)) {
        const auto a = hn::LoadU(d, low + i), b = hn::LoadU(d, high + i);
        hn::StoreU(hn::Add(a, b), d, low + i);
        hn::StoreU(hn::Sub(a, b), d, high + i);
      }
      for (; i < half; ++i) {
        const float a = low[i], b = high[i];
        low[i] = a + b;
        high[i] = a - b;
      }
    }
}

/// `factors`: the sign of each column over the root of the block's length.
void HadamardRow(const float* x, const float* factors, const HadamardShape& shape, float* out) {
  for (uint64_t i = 0; i < shape.width; ++i)
    out[i] = shape.inverse ? x[i] : x[i] * factors[i];
  zero_tail(out, shape.width);
  if (shape.inverse && shape.half)
    RoundToHalf(out, shape.width);
  for (uint64_t start = 0; start < shape.width; start += shape.block)
    Transform(out + start, shape.block);
  for (uint64_t i = 0; shape.inverse && i < shape.width; ++i)
    out[i] *= factors[i];
  if (shape.half)
    RoundToHalf(out, shape.width);
}

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cortiq::runtime {
namespace {

HWY_EXPORT(HadamardRow);

class HadamardCall final : public Call {
public:
  CallInfo info() const override { return {"hadamard", 1, transform.width, 0}; }
  uint64_t items(const StepShape& shape) const override { return shape.count; }
  uint64_t scratch_bytes() const override { return formats::f32_act_bytes(transform.width); }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    for (uint64_t token = shape.first + begin; token < shape.first + end; ++token) {
      float* result = out.present ? out.f32(step.arena, token) : reinterpret_cast<float*>(scratch);
      HWY_DYNAMIC_DISPATCH(HadamardRow)(input.f32(step.arena, token), factors.data(), transform, result);
      if (act_out.present)
        quantize_row(result, transform.width, act_out.bytes(step.arena, token), act_out.bf16);
    }
  }

  SlotRef input, out, act_out;
  HadamardShape transform{};
  std::vector<float> factors;
};

} // namespace

Status resolve_hadamard(const artifact::Call& op, const Resolver& resolver, ProgramFacts&, CallList& out) {
  const artifact::HadamardOp& row = *op.op_as_HadamardOp();
  auto call = std::make_unique<HadamardCall>();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t n, resolver.slot_elements(row.input(), "hadamard"));
  CORTIQ_ASSIGN_OR_RETURN(call->input, resolver.f32_slot(row.input(), n, "hadamard"));
  CORTIQ_RETURN_IF_ERROR(resolve_results(resolver, row, n, "hadamard", call->out, call->act_out));
  if (!std::has_single_bit(row.block()) || n % row.block() != 0)
    return invalid("hadamard: blocks of " + std::to_string(row.block()) + " do not divide " + std::to_string(n) +
                   " values");
  if (row.negative()->size() != (n + 7) / 8)
    return invalid("hadamard: " + std::to_string(row.negative()->size()) + " bytes of signs do not fit " +
                   std::to_string(n) + " values");
  call->transform = {n, row.block(), row.inverse(), row.half()};
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(row.block())));
  for (uint64_t i = 0; i < n; ++i)
    call->factors.push_back(row.negative()->Get(static_cast<uint32_t>(i / 8)) >> i % 8 & 1 ? -factor : factor);
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
#endif
