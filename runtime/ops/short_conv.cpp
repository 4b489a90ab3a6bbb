// A convolution between two gates: out = C * conv(B * X), the input being [B | C | X].

#include "formats/checked_math.h"
#include "runtime/ops/convolution.h"

namespace cortiq::runtime {
namespace {

class ShortConvCall final : public ConvolutionCall {
public:
  CallInfo info() const override { return {"short_conv", channels, taps, channels * taps * sizeof(float)}; }

private:
  void load(const float* in, uint64_t first, uint64_t count, float* row) const override {
    const float *b = in + first, *x = in + 2 * channels + first;
    for (uint64_t i = 0; i < count; ++i)
      row[i] = b[i] * x[i];
  }
  void store(const float* in, const float* sums, uint64_t first, uint64_t count, float* row) const override {
    const float* c = in + channels + first;
    for (uint64_t i = 0; i < count; ++i)
      row[i] = c[i] * sums[i];
  }
};

} // namespace

Status resolve_short_conv(const artifact::Call& op, const Resolver& resolver, ProgramFacts& facts, CallList& out) {
  const artifact::ShortConvOp& conv = *op.op_as_ShortConvOp();
  auto call = std::make_unique<ShortConvCall>();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t n, resolver.slot_elements(conv.out(), "short_conv"));
  CORTIQ_ASSIGN_OR_RETURN(call->out, resolver.f32_slot(conv.out(), n, "short_conv"));
  CORTIQ_ASSIGN_OR_RETURN(call->input, resolver.f32_slot(conv.input(), 3 * n, "short_conv"));
  CORTIQ_RETURN_IF_ERROR(call->resolve(resolver, facts, conv.weight(), conv.state(), n, conv.taps(), "short_conv"));
  out.push_back(std::move(call));
  return {};
}

} // namespace cortiq::runtime
