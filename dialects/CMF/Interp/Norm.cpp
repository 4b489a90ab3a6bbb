#include <cmath>

#include "dialects/CMF/Interp/OpTable.h"

using namespace mlir;

namespace cortiq::cmf {

namespace {

// The mean runs in f64; the factor 1 / sqrt(mean + eps) is rounded once to f32 (CMF specification 3.2).
void normalize(float* x, int64_t n, double eps, const std::vector<float>* weight, bool unitOffset) {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i)
    squares += static_cast<double>(x[i]) * x[i];
  const float factor = static_cast<float>(1 / std::sqrt(squares / n + eps));
  for (int64_t i = 0; i < n; ++i) {
    x[i] *= factor;
    if (weight)
      x[i] *= unitOffset ? 1 + (*weight)[i] : (*weight)[i];
  }
}

} // namespace

Status referenceRmsNorm(Operation* op, Frame& frame) {
  auto norm = cast<RmsNormOp>(op);
  std::shared_ptr<const std::vector<float>> weight;
  if (norm.getWeight()) {
    CORTIQ_ASSIGN_OR_RETURN(weight, frame.weight(norm.getWeight()));
  }
  Array out = frame.value(norm.getX());
  const int64_t group = norm.getGroupSize();
  for (int64_t start = 0; start < static_cast<int64_t>(out.data.size()); start += group)
    normalize(out.data.data() + start, group, norm.getEps().convertToDouble(), weight.get(), norm.getUnitOffset());
  frame.set(norm.getResult(), std::move(out));
  return {};
}

Status referenceLayerNorm(Operation* op, Frame& frame) {
  auto norm = cast<LayerNormOp>(op);
  std::shared_ptr<const std::vector<float>> weight, bias;
  if (norm.getWeight()) {
    CORTIQ_ASSIGN_OR_RETURN(weight, frame.weight(norm.getWeight()));
  }
  if (norm.getBias()) {
    CORTIQ_ASSIGN_OR_RETURN(bias, frame.weight(norm.getBias()));
  }
  Array out = frame.value(norm.getX());
  for (int64_t t = 0; t < out.rows; ++t) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < out.cols; ++i)
      sum += out.row(t)[i];
    const double mean = sum / out.cols;
    for (int64_t i = 0; i < out.cols; ++i)
      squares += (out.row(t)[i] - mean) * (out.row(t)[i] - mean);
    const double factor = 1 / std::sqrt(squares / out.cols + norm.getEps().convertToDouble());
    for (int64_t i = 0; i < out.cols; ++i)
      out.row(t)[i] = static_cast<float>((out.row(t)[i] - mean) * factor * (weight ? (*weight)[i] : 1.0f) +
                                         (bias ? (*bias)[i] : 0.0f));
  }
  frame.set(norm.getResult(), std::move(out));
  return {};
}

Status referenceAddRmsNorm(Operation* op, Frame& frame) {
  auto norm = cast<AddRmsNormOp>(op);
  CORTIQ_ASSIGN_OR_RETURN(const auto weight, frame.weight(norm.getWeight()));
  Array sum = frame.value(norm.getA());
  const Array& b = frame.value(norm.getB());
  for (size_t i = 0; i < sum.data.size(); ++i)
    sum.data[i] += b.data[i];
  Array normed = sum;
  for (int64_t t = 0; t < normed.rows; ++t)
    normalize(normed.row(t), normed.cols, norm.getEps().convertToDouble(), weight.get(), norm.getUnitOffset());
  frame.set(norm.getSum(), std::move(sum));
  frame.set(norm.getNormed(), std::move(normed));
  return {};
}

} // namespace cortiq::cmf
