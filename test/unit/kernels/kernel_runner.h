#pragma once

// Runs one kernel problem on random data and compares it with the reference decode in double precision.

#include <functional>
#include <string>
#include <vector>

#include "formats/artifact/kernel_abi.h"
#include "test/cases/kernel_problems.h"

namespace cortiq::test {

/// How weights and activations are drawn.
enum class Data {
  kOrdinary, ///< valid random blocks, activations around 1
  kExtremes, ///< all activations at +-127 of their group, alternating or equal; weights random
  kZero,     ///< zero activations
};

/// The inputs of a problem and what is to come out.
struct KernelData {
  std::vector<uint8_t> weights; ///< packed, with the tail padding
  std::vector<uint8_t> act;     ///< in the arm's form, all tokens
  std::vector<float> residual, bias;
  std::vector<double> expected;  ///< [tokens][rows]
  std::vector<double> magnitude; ///< sum of |w x| of each output
  uint64_t rows = 0, act_stride = 0, out_stride = 0;
};

KernelData make_kernel_data(const KernelProblem& problem, Data kind, uint64_t seed);

/// Calls `kernel` on the data, inside guard regions that must stay untouched, and returns out[tokens][rows].
std::vector<float> run_kernel(const KernelProblem& problem, const KernelData& data,
                              const std::function<void(const formats::KernelArgs*)>& kernel);

/// Plain form of the q8a quantization (formats/artifact/kernel_abi.h): one token's record from k floats.
std::vector<uint8_t> quantize_q8a(const std::vector<float>& x);

} // namespace cortiq::test
