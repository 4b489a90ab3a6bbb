// References of the operations on heads.

#include <cmath>

#include "dialects/CMF/Interp/OpTable.h"

using namespace mlir;

namespace cortiq::cmf {

Status referenceConcatHeads(Operation* op, Frame& frame) {
  auto concat = cast<ConcatHeadsOp>(op);
  const Array &a = frame.value(concat.getA()), &b = frame.value(concat.getB());
  const int64_t heads = concat.getHeads(), wide = concat.getShared() ? a.cols : a.cols / heads;
  Array out(a.rows, heads * wide + b.cols);
  for (int64_t t = 0; t < a.rows; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      const float* first = a.row(t) + (concat.getShared() ? 0 : h * wide);
      const float* second = b.row(t) + h * (b.cols / heads);
      float* head = out.row(t) + h * (out.cols / heads);
      std::copy(first, first + wide, head);
      std::copy(second, second + b.cols / heads, head + wide);
    }
  frame.set(concat.getResult(), std::move(out));
  return {};
}

Status referenceHeadMatmul(Operation* op, Frame& frame) {
  auto matmul = cast<HeadMatmulOp>(op);
  const Array& x = frame.value(matmul.getX());
  const WeightType type = matmul.getWeightType(0);
  const int64_t rows = type.getRows(), cols = type.getCols();
  Array out(x.rows, rows * static_cast<int64_t>(matmul.getWeights().size()));
  for (size_t h = 0; h < matmul.getWeights().size(); ++h) {
    CORTIQ_ASSIGN_OR_RETURN(const auto matrix, frame.weight(matmul.getWeights()[h]));
    for (int64_t t = 0; t < x.rows; ++t)
      for (int64_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (int64_t k = 0; k < cols; ++k)
          sum += static_cast<double>(x.row(t)[h * cols + k]) * (*matrix)[r * cols + k];
        out.row(t)[h * rows + r] = static_cast<float>(sum);
      }
  }
  frame.set(matmul.getResult(), std::move(out));
  return {};
}

namespace {

// ln of the sum of e^x over `n` values.
double logSum(const float* x, int64_t n) {
  const double most = *std::max_element(x, x + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += std::exp(x[i] - most);
  return most + std::log(sum);
}

} // namespace

Status referenceClusterLogits(Operation* op, Frame& frame) {
  auto cluster = cast<ClusterLogitsOp>(op);
  Array out = frame.value(cluster.getLogits());
  const Array& clusters = frame.value(cluster.getClusters());
  const int64_t size = out.cols / clusters.cols;
  for (int64_t t = 0; t < out.rows; ++t) {
    const double all = logSum(clusters.row(t), clusters.cols);
    for (int64_t c = 0; c < clusters.cols; ++c) {
      float* block = out.row(t) + c * size;
      const double add = clusters.row(t)[c] - all - logSum(block, size);
      for (int64_t i = 0; i < size; ++i)
        block[i] = static_cast<float>(block[i] + add);
    }
  }
  frame.set(cluster.getResult(), std::move(out));
  return {};
}

} // namespace cortiq::cmf
