#pragma once

// Tables of rotary frequencies in the ways that files describe them (CMF specification 3.3, GGUF models 1.3).

#include <cstdint>
#include <span>
#include <vector>

namespace cortiq::compiler {

/// 1 / base^(2i/dims) for i below dims / 2.
std::vector<double> plainFrequencies(double base, int64_t dims);

/// Divides each frequency by its factor; both have one length.
void divideFrequencies(std::vector<double>& frequencies, std::span<const double> factors);

struct YarnParameters {
  double factor = 1;
  double originalContext = 0;
  double betaFast = 32;
  double betaSlow = 1;
  double extFactor = 1; ///< share of the correction; 1 in CMF
};

/// How the ends of YaRN's ramp are clamped: the two containers' references differ where the ramp is very short.
enum class YarnClamp { kCmf, kGguf };

/// Blends each frequency with itself / factor, by its place on YaRN's ramp.
void applyYarn(std::vector<double>& frequencies, double base, const YarnParameters& yarn, YarnClamp clamp);

} // namespace cortiq::compiler
