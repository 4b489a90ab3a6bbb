#include "runtime/ops/delta.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/ops/delta.cpp"
#include "hwy/foreach_target.h" // stands before every header that is compiled once a target

#include "hwy/contrib/math/math-inl.h"
#include "runtime/ops/logistic-inl.h"
#include "runtime/ops/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cortiq::runtime {
namespace HWY_NAMESPACE {

// Four vectors of columns: what the registers hold beside sums, and with up to 256 rows what the nearest cache holds.
void FourVectors(float* s, uint64_t rows, uint64_t stride, const DeltaToken& token, const float* decayed_key,
                 uint64_t column) {
  const F32 d;
  const size_t n = hn::Lanes(d);
  const float* value = token.value + column;
  auto c0 = hn::LoadU(d, value), c1 = hn::LoadU(d, value + n), c2 = hn::LoadU(d, value + 2 * n),
       c3 = hn::LoadU(d, value + 3 * n);
  if (decayed_key) {
    auto k0 = hn::Zero(d), k1 = hn::Zero(d), k2 = hn::Zero(d), k3 = hn::Zero(d);
    const float* row = s + column;
    for (uint64_t i = 0; i < rows; ++i, row += stride) {
      const auto key = hn::Set(d, decayed_key[i]);
      k0 = hn::MulAdd(key, hn::LoadU(d, row), k0);
      k1 = hn::MulAdd(key, hn::LoadU(d, row + n), k1);
      k2 = hn::MulAdd(key, hn::LoadU(d, row + 2 * n), k2);
      k3 = hn::MulAdd(key, hn::LoadU(d, row + 3 * n), k3);
    }
    c0 = hn::Sub(c0, k0);
    c1 = hn::Sub(c1, k1);
    c2 = hn::Sub(c2, k2);
    c3 = hn::Sub(c3, k3);
  }
  const auto rate = hn::Set(d, token.rate);
  c0 = hn::Mul(c0, rate);
  c1 = hn::Mul(c1, rate);
  c2 = hn::Mul(c2, rate);
  c3 = hn::Mul(c3, rate);
  auto o0 = hn::Zero(d), o1 = hn::Zero(d), o2 = hn::Zero(d), o3 = hn::Zero(d);
  float* row = s + column;
  for (uint64_t i = 0; i < rows; ++i, row += stride) {
    const auto decay = hn::Set(d, token.decay[i]), key = hn::Set(d, token.key[i]), query = hn::Set(d, token.query[i]);
    const auto s0 = hn::MulAdd(key, c0, hn::Mul(decay, hn::LoadU(d, row)));
    const auto s1 = hn::MulAdd(key, c1, hn::Mul(decay, hn::LoadU(d, row + n)));
    const auto s2 = hn::MulAdd(key, c2, hn::Mul(decay, hn::LoadU(d, row + 2 * n)));
    const auto s3 = hn::MulAdd(key, c3, hn::Mul(decay, hn::LoadU(d, row + 3 * n)));
    hn::StoreU(s0, d, row);
    hn::StoreU(s1, d, row + n);
    hn::StoreU(s2, d, row + 2 * n);
    hn::StoreU(s3, d, row + 3 * n);
    o0 = hn::MulAdd(query, s0, o0);
    o1 = hn::MulAdd(query, s1, o1);
    o2 = hn::MulAdd(query, s2, o2);
    o3 = hn::MulAdd(query, s3, o3);
  }
  hn::StoreU(o0, d, token.out + column);
  hn::StoreU(o1, d, token.out + column + n);
  hn::StoreU(o2, d, token.out + column + 2 * n);
  hn::StoreU(o3, d, token.out + column + 3 * n);
}

void OneColumn(float* s, uint64_t rows, uint64_t stride, const DeltaToken& token, const float* decayed_key,
               uint64_t column) {
  float known = 0;
  for (uint64_t i = 0; decayed_key && i < rows; ++i)
    known += decayed_key[i] * s[i * stride + column];
  const float change = (token.value[column] - known) * token.rate;
  float out = 0;
  for (uint64_t i = 0; i < rows; ++i) {
    float& cell = s[i * stride + column];
    cell = token.decay[i] * cell + token.key[i] * change;
    out += token.query[i] * cell;
  }
  token.out[column] = out;
}

/// Blocks of columns outside, tokens inside: a block of the state stays near while the tokens pass. `decayed_keys` has
/// `key_stride` numbers a token; null without correction.
void DeltaTokens(float* state, uint64_t rows, uint64_t cols, const DeltaToken* tokens, uint64_t count,
                 const float* decayed_keys, uint64_t key_stride) {
  const uint64_t block = 4 * hn::Lanes(F32());
  uint64_t column = 0;
  for (; column + block <= cols; column += block)
    for (uint64_t t = 0; t < count; ++t)
      FourVectors(state, rows, cols, tokens[t], decayed_keys ? decayed_keys + t * key_stride : nullptr, column);
  for (; column < cols; ++column)
    for (uint64_t t = 0; t < count; ++t)
      OneColumn(state, rows, cols, tokens[t], decayed_keys ? decayed_keys + t * key_stride : nullptr, column);
}

double SquareSum(const float* x, uint64_t count) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  auto sums = hn::Zero(d);
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    sums = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, x + i), sums);
  double sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < count; ++i)
    sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

void ScaleRow(const float* x, uint64_t count, float factor, float* out) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, out + i);
  for (; i < count; ++i)
    out[i] = x[i] * factor;
}

/// y *= factor * norm * sigmoid(gate) [* gate].
void GateRow(float* y, uint64_t count, float factor, const float* norm, const float* gate, bool silu) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  const auto one = hn::Set(d, 1.0f);
  uint64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto g = hn::LoadU(d, gate + i);
    const auto normed = hn::Mul(hn::Mul(hn::LoadU(d, y + i), hn::Set(d, factor)), hn::LoadU(d, norm + i));
    const auto opened = hn::Div(silu ? hn::Mul(normed, g) : normed, hn::Add(one, ExpNegative(d, g)));
    hn::StoreU(opened, d, y + i);
  }
  for (; i < count; ++i)
    y[i] = y[i] * factor * norm[i] * (silu ? gate[i] : 1.0f) / (1.0f + std::exp(-gate[i]));
}

/// Arrays are readable and `out` writable to a multiple of 16.
void DecayRow(const float* f, const float* bias, const float* rates, uint64_t count, bool bounded, float lower_bound,
              float* out) {
  const F32 d;
  const auto one = hn::Set(d, 1.0f);
  for (uint64_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto x = hn::Add(hn::LoadU(d, f + i), hn::LoadU(d, bias + i)), rate = hn::LoadU(d, rates + i);
    const auto sigmoid = hn::Div(one, hn::Add(one, ExpNegative(d, hn::Mul(rate, x))));
    // max(x, 0) + ln(1 + e^-|x|)
    const auto softplus = hn::Add(hn::Max(x, hn::Zero(d)), hn::Log1p(d, hn::Exp(d, hn::Neg(hn::Abs(x)))));
    const auto exponent = bounded ? hn::Mul(hn::Set(d, lower_bound), sigmoid) : hn::Neg(hn::Mul(rate, softplus));
    hn::StoreU(hn::Exp(d, exponent), d, out + i);
  }
}

} // namespace HWY_NAMESPACE
} // namespace cortiq::runtime
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cortiq::runtime {
namespace {

HWY_EXPORT(DeltaTokens);
HWY_EXPORT(SquareSum);
HWY_EXPORT(ScaleRow);
HWY_EXPORT(GateRow);
HWY_EXPORT(DecayRow);

} // namespace

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double softplus(double x) {
  return x > 20 ? x : std::log1p(std::exp(x));
}

void delta_rule(float* state, uint64_t rows, uint64_t cols, std::span<const DeltaToken> tokens, bool corrects,
                float* scratch) {
  const uint64_t stride = (rows + 15) / 16 * 16;
  for (size_t t = 0; corrects && t < tokens.size(); ++t)
    for (uint64_t i = 0; i < rows; ++i)
      scratch[t * stride + i] = tokens[t].decay[i] * tokens[t].key[i];
  HWY_DYNAMIC_DISPATCH(DeltaTokens)
  (state, rows, cols, tokens.data(), tokens.size(), corrects ? scratch : nullptr, stride);
}

void unit_vector(const float* x, uint64_t count, double factor, float* out) {
  const double length = std::sqrt(HWY_DYNAMIC_DISPATCH(SquareSum)(x, count) + 1e-6);
  HWY_DYNAMIC_DISPATCH(ScaleRow)(x, count, static_cast<float>(factor / length), out);
}

void gated_norm(float* y, uint64_t count, const float* norm, const float* gate, float eps, bool silu) {
  const double mean = HWY_DYNAMIC_DISPATCH(SquareSum)(y, count) / static_cast<double>(count);
  HWY_DYNAMIC_DISPATCH(GateRow)(y, count, static_cast<float>(1 / std::sqrt(mean + eps)), norm, gate, silu);
}

void channel_decays(const float* f, const float* bias, const float* rates, uint64_t count,
                    std::optional<float> lower_bound, float* out) {
  // Heads stand side by side: whole vectors are made of a copy, so that nothing behind the head is touched.
  for (uint64_t i = 0; i < count; i += 16) {
    const uint64_t n = count - i < 16 ? count - i : 16;
    float copy[3][16] = {}, decays[16];
    for (uint64_t j = 0; j < n; ++j) {
      copy[0][j] = f[i + j];
      copy[1][j] = bias[i + j];
      copy[2][j] = rates[i + j];
    }
    HWY_DYNAMIC_DISPATCH(DecayRow)
    (copy[0], copy[1], copy[2], 16, lower_bound.has_value(), lower_bound.value_or(0.0f), decays);
    for (uint64_t j = 0; j < n; ++j)
      out[i + j] = decays[j];
  }
}

} // namespace cortiq::runtime
#endif
