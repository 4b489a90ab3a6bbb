#include "compiler/frontend/RopeTables.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cortiq::compiler {

std::vector<double> plainFrequencies(double base, int64_t dims) {
  std::vector<double> frequencies(dims / 2);
  for (size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = std::pow(base, -2.0 * i / dims);
  return frequencies;
}

void divideFrequencies(std::vector<double>& frequencies, std::span<const double> factors) {
  for (size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] /= factors[i];
}

void applyYarn(std::vector<double>& frequencies, double base, const YarnParameters& yarn, YarnClamp clamp) {
  const double dims = 2.0 * frequencies.size();
  // The pair whose frequency turns `rotations` times within the original context.
  auto pair = [&](double rotations) {
    return dims * std::log(yarn.originalContext / (rotations * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  const double low = std::max(0.0, std::floor(pair(yarn.betaFast)));
  double high = std::ceil(pair(yarn.betaSlow)), least;
  if (clamp == YarnClamp::kCmf) {
    high = std::clamp(high, 0.0, dims / 2 - 1);
    least = 1;
  } else {
    high = std::min(high, dims - 1);
    least = 0.001;
  }
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((i - low) / std::max(least, high - low), 0.0, 1.0);
    const double kept = (1 - ramp) * yarn.extFactor;
    frequencies[i] *= kept + (1 - kept) / yarn.factor;
  }
}

} // namespace cortiq::compiler
