// Gated activations, shared by the operations that end a feed-forward block's first half; included once a target, see
// Highway's foreach_target.h.
#if defined(CORTIQ_RUNTIME_OPS_GLU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CORTIQ_RUNTIME_OPS_GLU_INL_H_
#undef CORTIQ_RUNTIME_OPS_GLU_INL_H_
#else
#define CORTIQ_RUNTIME_OPS_GLU_INL_H_
#endif

#include "formats/artifact/artifact_generated.h"
#include "hwy/contrib/math/math-inl.h"
#include "runtime/ops/logistic-inl.h"
#include "runtime/ops/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {

/// x / (1 + exp(-s)): x times the logistic function of s.
template <class D, class V>
HWY_INLINE V TimesLogistic(D d, V x, V s) {
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), ExpNegative(d, s)));
}

template <class D, class V>
HWY_INLINE V Activate(D d, V x, artifact::Activation activation) {
  switch (activation) {
  case artifact::Activation::Silu:
    return TimesLogistic(d, x, x);
  case artifact::Activation::GeluTanh: {
    // 0.5 x (1 + tanh(u)) = x * logistic(2u), u = sqrt(2/pi) (x + 0.044715 x^3)
    const auto cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), hn::Set(d, 0.044715f), x);
    return TimesLogistic(d, x, hn::Mul(cubic, hn::Set(d, 1.5957691216057308f)));
  }
  case artifact::Activation::GeluErf: {
    float lanes[16];
    hn::StoreU(x, d, lanes);
    for (size_t i = 0; i < hn::Lanes(d); ++i)
      lanes[i] = 0.5f * lanes[i] * (1.0f + std::erf(lanes[i] * 0.70710678118654752f));
    return hn::LoadU(d, lanes);
  }
  case artifact::Activation::Relu:
    return hn::Max(x, hn::Zero(d));
  case artifact::Activation::Situ:
  case artifact::Activation::SwigluOai:
    break; // see Gated()
  }
  return x;
}

/// activation(gate) * up, with the numbers that the activation has.
template <class D, class V>
HWY_INLINE V Gated(D d, V gate, V up, artifact::Activation activation, float alpha, float limit) {
  const auto wide = hn::Set(d, limit);
  if (activation == artifact::Activation::SwigluOai) {
    gate = hn::Min(gate, wide);
    up = hn::Add(hn::Min(hn::Max(up, hn::Neg(wide)), wide), hn::Set(d, 1.0f));
    return hn::Mul(TimesLogistic(d, gate, hn::Mul(hn::Set(d, alpha), gate)), up);
  }
  if (activation == artifact::Activation::Situ) {
    const auto bend = hn::Set(d, alpha);
    if (limit > 0)
      up = hn::Mul(wide, hn::Tanh(d, hn::Div(up, wide)));
    return hn::Mul(TimesLogistic(d, hn::Mul(bend, hn::Tanh(d, hn::Div(gate, bend))), gate), up);
  }
  return hn::Mul(Activate(d, gate, activation), up);
}

/// `up` may be null. Rows are readable and `out` writable to a multiple of 16; what stands there is zeroed at the end.
HWY_INLINE void glu_range(const float* gate, const float* up, uint64_t count, artifact::Activation activation,
                          float alpha, float limit, float* out) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  for (uint64_t i = 0; i < count; i += lanes) {
    const auto g = hn::LoadU(d, gate + i);
    hn::StoreU(up ? Gated(d, g, hn::LoadU(d, up + i), activation, alpha, limit) : Activate(d, g, activation), d,
               out + i);
  }
  zero_tail(out, count);
}

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#endif
