#pragma once

// Numbers of the rotary position encoding that a CMF header holds in another form than its sources.

#include <cstdint>
#include <vector>

namespace cortiq::convert {

/// partial_rotary_factor for `dims` rotated of `head` dimensions: floor(head * factor) is `dims` again, in f32.
float partial_factor(uint64_t dims, uint64_t head);

/// The scaling of Llama 3.1.
struct Llama3Scaling {
  double factor = 1, low = 1, high = 4, original_context = 8192;
};

/// Llama 3's scaling as divisors of the plain frequencies (GGUF models 2.6).
std::vector<double> llama3_factors(double base, uint64_t dims, const Llama3Scaling& scaling);

struct YarnScaling {
  double factor = 1, original_context = 0, fast = 32, slow = 1;
  bool rounded = true; ///< whether the ramp begins and ends at whole pairs
};

/// YaRN as GGUF and checkpoints mean it (GGUF models 1.3), as divisors of the plain frequencies.
std::vector<double> yarn_factors(const YarnScaling& yarn, double base, uint64_t dims);

/// Whether CMF's YaRN gives the same frequencies: it bounds the ramp otherwise where that is short or long.
bool same_yarn_in_cmf(const YarnScaling& yarn, double base, uint64_t dims);

} // namespace cortiq::convert
