#include "dialects/CMF/Interp/Arithmetic.h"
#include "dialects/CMF/Interp/OpTable.h"

using namespace mlir;

namespace cortiq::cmf {

namespace {

// x . w over `n` terms. Four sums side by side, added at the end, so that one addition need not wait for the last.
double dot(const float* x, const float* w, int64_t n) {
  double sums[4] = {};
  int64_t k = 0;
  for (; k + 4 <= n; k += 4)
    for (int j = 0; j < 4; ++j)
      sums[j] += static_cast<double>(x[k + j]) * w[k + j];
  for (; k < n; ++k)
    sums[0] += static_cast<double>(x[k]) * w[k];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

} // namespace

// Rows outside, tokens inside: a row of the matrix is read once.
Array multiply(const Array& x, const float* matrix, int64_t rows) {
  Array out(x.rows, rows);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t t = 0; t < x.rows; ++t)
      out.row(t)[r] = static_cast<float>(dot(x.row(t), matrix + r * x.cols, x.cols));
  return out;
}

void addBias(Array& x, const std::vector<float>& bias) {
  for (int64_t t = 0; t < x.rows; ++t)
    for (int64_t i = 0; i < x.cols; ++i)
      x.row(t)[i] += bias[i];
}

Status referenceDequant(Operation* op, Frame& frame) {
  auto dequant = cast<DequantOp>(op);
  const auto type = cast<RankedTensorType>(dequant.getResult().getType());
  CORTIQ_ASSIGN_OR_RETURN(const auto values, frame.weight(dequant.getWeight()));
  Array out;
  out.rows = type.getDimSize(0);
  out.cols = type.getDimSize(1);
  out.data = *values;
  frame.set(dequant.getResult(), std::move(out));
  return {};
}

Status referenceMatmul(Operation* op, Frame& frame) {
  auto matmul = cast<MatmulOp>(op);
  const Array& matrix = frame.value(matmul.getMatrix());
  frame.set(matmul.getResult(), multiply(frame.value(matmul.getX()), matrix.data.data(), matrix.rows));
  return {};
}

Status referenceBiasAdd(Operation* op, Frame& frame) {
  auto add = cast<BiasAddOp>(op);
  CORTIQ_ASSIGN_OR_RETURN(const auto bias, frame.weight(add.getBias()));
  Array out = frame.value(add.getX());
  addBias(out, *bias);
  frame.set(add.getResult(), std::move(out));
  return {};
}

// Every step rounds to f32 as the unfused operations do, so that fusing changes no bit.
Status referenceFusedMatmul(Operation* op, Frame& frame) {
  auto fused = cast<FusedMatmulOp>(op);
  for (unsigned part = 0; part < fused.getWeights().size(); ++part) {
    CORTIQ_ASSIGN_OR_RETURN(const auto matrix, frame.weight(fused.getWeights()[part]));
    Array out = multiply(frame.value(fused.getX()), matrix->data(), fused.getWeightType(part).getRows());
    if (Value biasValue = fused.getBiasOf(part)) {
      CORTIQ_ASSIGN_OR_RETURN(const auto bias, frame.weight(biasValue));
      addBias(out, *bias);
    }
    if (Value residual = fused.getResidual()) {
      const Array& other = frame.value(residual);
      for (size_t i = 0; i < out.data.size(); ++i)
        out.data[i] += other.data[i];
    }
    frame.set(fused.getParts()[part], std::move(out));
  }
  return {};
}

} // namespace cortiq::cmf
