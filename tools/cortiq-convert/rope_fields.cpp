#include "tools/cortiq-convert/rope_fields.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cortiq::convert {
namespace {

/// Between which pairs YaRN goes over from plain to divided frequencies.
struct Ramp {
  double low = 0, high = 0;
};

Ramp yarn_ramp(const YarnScaling& yarn, double base, uint64_t dims) {
  const double d = static_cast<double>(dims);
  const auto pair_of = [&](double turns) {
    return d * std::log(yarn.original_context / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  const double low = pair_of(yarn.fast), high = pair_of(yarn.slow);
  return {std::max(0.0, yarn.rounded ? std::floor(low) : low), std::min(d - 1, yarn.rounded ? std::ceil(high) : high)};
}

} // namespace

float partial_factor(uint64_t dims, uint64_t head) {
  const float size = static_cast<float>(head);
  float factor = static_cast<float>(dims) / size;
  while (std::floor(size * factor) < static_cast<float>(dims))
    factor = std::nextafter(factor, 2.0f);
  return factor;
}

std::vector<double> llama3_factors(double base, uint64_t dims, const Llama3Scaling& scaling) {
  std::vector<double> factors(dims / 2);
  for (uint64_t i = 0; i < factors.size(); ++i) {
    const double length =
        2 * std::numbers::pi * std::pow(base, 2.0 * static_cast<double>(i) / static_cast<double>(dims));
    const double turns = scaling.original_context / length;
    if (turns > scaling.high) {
      factors[i] = 1;
    } else if (turns < scaling.low) {
      factors[i] = scaling.factor;
    } else {
      const double smooth = (turns - scaling.low) / (scaling.high - scaling.low);
      factors[i] = 1 / ((1 - smooth) / scaling.factor + smooth);
    }
  }
  return factors;
}

std::vector<double> yarn_factors(const YarnScaling& yarn, double base, uint64_t dims) {
  const Ramp ramp = yarn_ramp(yarn, base, dims);
  std::vector<double> factors(dims / 2);
  for (uint64_t i = 0; i < factors.size(); ++i) {
    const double at = (static_cast<double>(i) - ramp.low) / std::max(0.001, ramp.high - ramp.low);
    const double plain = 1 - std::clamp(at, 0.0, 1.0);
    factors[i] = 1 / (plain + (1 - plain) / yarn.factor);
  }
  return factors;
}

bool same_yarn_in_cmf(const YarnScaling& yarn, double base, uint64_t dims) {
  const Ramp ramp = yarn_ramp(yarn, base, dims);
  return yarn.rounded && ramp.high >= 0 && ramp.high <= static_cast<double>(dims) / 2 - 1 && ramp.high - ramp.low >= 1;
}

} // namespace cortiq::convert
