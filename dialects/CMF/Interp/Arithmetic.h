#pragma once

// Arithmetic that several references share. Every result rounds to f32 where an operation of the dialect ends.

#include "dialects/CMF/Interp/Frame.h"

namespace cortiq::cmf {

/// x * matrix^T, `matrix` having `rows` rows of x.cols values. Sums run in f64.
Array multiply(const Array& x, const float* matrix, int64_t rows);

/// Adds a vector to every row.
void addBias(Array& x, const std::vector<float>& bias);

/// The two numbers that some activations have.
struct ActivationNumbers {
  double alpha = 0, limit = 0;
};

/// Those of an operation with an activation.
template <class Op>
ActivationNumbers activationNumbers(Op op) {
  return {op.getAlpha() ? op.getAlpha()->convertToDouble() : 0, op.getLimit() ? op.getLimit()->convertToDouble() : 0};
}

/// gate[i] = activation(gate[i]) * up[i].
void applyGlu(Array& gate, const Array& up, Activation activation, ActivationNumbers numbers);

} // namespace cortiq::cmf
