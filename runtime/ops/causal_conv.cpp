// A depthwise convolution over time, with SiLU behind it where the model wants it.

#include <cstring>

#include "runtime/ops/convolution.h"

namespace cortiq::runtime {
namespace {

class CausalConvCall final : public ConvolutionCall {
public:
  CallInfo info() const override { return {"causal_conv", channels, taps, channels * taps * sizeof(float)}; }

private:
  void load(const float* in, uint64_t first, uint64_t count, float* row) const override {
    std::memcpy(row, in + first, count * sizeof(float));
  }
  void store(const float*, const float* sums, uint64_t, uint64_t count, float* row) const override {
    std::memcpy(row, sums, count * sizeof(float));
  }
};

} // namespace

Status resolve_causal_conv(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::CausalConvOp& conv = *op.op_as_CausalConvOp();
  auto call = std::make_unique<CausalConvCall>();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t n, resolver.slot_elements(conv.out(), "causal_conv"));
  CORTIQ_ASSIGN_OR_RETURN(call->out, resolver.f32_slot(conv.out(), n, "causal_conv"));
  CORTIQ_ASSIGN_OR_RETURN(call->input, resolver.f32_slot(conv.input(), n, "causal_conv"));
  CORTIQ_RETURN_IF_ERROR(call->resolve(resolver, facts, conv.weight(), conv.state(), n, conv.taps(), "causal_conv"));
  call->silu = conv.silu();
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
