// The exponential in a logistic function; included once a target, see Highway's foreach_target.h.
#if defined(CORTIQ_RUNTIME_OPS_LOGISTIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CORTIQ_RUNTIME_OPS_LOGISTIC_INL_H_
#undef CORTIQ_RUNTIME_OPS_LOGISTIC_INL_H_
#else
#define CORTIQ_RUNTIME_OPS_LOGISTIC_INL_H_
#endif

#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {

/// e^-x for 1 / (1 + e^-x). Highway's exponential is good up to 104 and wraps its exponent beyond, to zero or NaN; from
/// e^88 on the logistic function is 0 in any sum. The limit stands first so that NaN stays NaN.
template <class D, class V>
HWY_INLINE V ExpNegative(D d, V x) {
  return hwy::HWY_NAMESPACE::Exp(
      d, hwy::HWY_NAMESPACE::Min(hwy::HWY_NAMESPACE::Set(d, 88.0f), hwy::HWY_NAMESPACE::Neg(x)));
}

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#endif
