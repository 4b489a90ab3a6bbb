// Activations to int8 in groups of 32 (kernel_abi.h), with the column scales that some codecs carry.

#include "runtime/ops/quantize.h"
#include "formats/codec/codec.h"
#include "runtime/ops/op.h"
#include "runtime/ops/result_slots.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/ops/quantize.cpp"
#include "hwy/foreach_target.h" // stands before every header that is compiled once a target

#include "runtime/ops/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {

void QuantizeRow(const float* x, uint64_t k, uint8_t* record, bool bf16) {
  quantize_range(x, 0, k, k, record, bf16);
}

void MultiplyRow(const float* x, const float* y, uint64_t count, float* out) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, out + i);
  for (; i < count; ++i)
    out[i] = x[i] * y[i];
  zero_tail(out, count);
}

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cortiq::runtime {

HWY_EXPORT(QuantizeRow);

void quantize_row(const float* x, uint64_t k, uint8_t* record, bool bf16) {
  HWY_DYNAMIC_DISPATCH(QuantizeRow)(x, k, record, bf16);
}

namespace {

HWY_EXPORT(MultiplyRow);

constexpr uint64_t kBriefElements = 4096; // half a microsecond; a barrier of many workers takes one to two

class QuantizeCall final : public Call {
public:
  CallInfo info() const override { return {"quantize", 1, input.elements, 0}; }
  uint64_t items(const StepShape& shape) const override { return shape.count; }
  bool brief(const StepShape& shape) const override { return input.elements * shape.count <= kBriefElements; }
  uint64_t scratch_bytes() const override { return formats::f32_act_bytes(input.elements); }

  void run(const StepContext& step, const StepShape& shape, uint64_t begin, uint64_t end,
           uint8_t* scratch) const override {
    const uint64_t k = input.elements;
    for (uint64_t token = shape.first + begin; token < shape.first + end; ++token) {
      const float* x = input.f32(step.arena, token);
      if (!column_scale.empty()) {
        float* scaled = out.present ? out.f32(step.arena, token) : reinterpret_cast<float*>(scratch);
        HWY_DYNAMIC_DISPATCH(MultiplyRow)(x, column_scale.data(), k, scaled);
        x = scaled;
      }
      if (act_out.present)
        quantize_row(x, k, act_out.bytes(step.arena, token), act_out.bf16);
    }
  }

  SlotRef input, out, act_out;
  std::vector<float> column_scale;
};

/// The column scales stand as f16 in the tensor part of a packed weight.
StatusOr<std::vector<float>> column_scales(const Resolver& resolver, uint32_t index, uint64_t k) {
  CORTIQ_ASSIGN_OR_RETURN(const WeightRef weight, resolver.weight(index, "quantize"));
  if (!weight.codec->column_scales || weight.layout != formats::LayoutId::kR16 || weight.cols != k)
    return invalid("quantize: weight " + std::to_string(index) + " has no column scales for " + std::to_string(k) +
                   " columns");
  std::vector<float> out(k);
  for (uint64_t i = 0; i < k; ++i) {
    uint16_t bits;
    std::memcpy(&bits, weight.bytes.data() + 2 * i, 2);
    out[i] = formats::f16_to_f32(bits);
  }
  return out;
}

} // namespace

Status resolve_quantize(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::QuantizeOp& quantize = *op.op_as_QuantizeOp();
  auto call = std::make_unique<QuantizeCall>();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t k, resolver.slot_elements(quantize.input(), "quantize"));
  CORTIQ_ASSIGN_OR_RETURN(call->input, resolver.f32_slot(quantize.input(), k, "quantize"));
  if (quantize.column_scale() != kNoIndex) {
    CORTIQ_ASSIGN_OR_RETURN(call->column_scale, column_scales(resolver, quantize.column_scale(), k));
  }
  CORTIQ_RETURN_IF_ERROR(resolve_results(resolver, quantize, k, "quantize", call->out, call->act_out));
  if (!call->act_out.present && (!call->out.present || call->column_scale.empty()))
    return invalid("quantize: it has nothing to write");
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
#endif
