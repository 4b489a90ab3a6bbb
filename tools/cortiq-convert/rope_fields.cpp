#include "tools/cortiq-convert/rope_fields.h"

#include <cmath>
#include <numbers>

namespace cortiq::convert {

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

} // namespace cortiq::convert
