#include <cmath>

#include "dialects/CMF/Interp/OpTable.h"

using namespace mlir;

namespace cortiq::cmf {

namespace {

double apply(GateFunction function, double x) {
  switch (function) {
  case GateFunction::sigmoid:
    return 1 / (1 + std::exp(-x));
  case GateFunction::softplus:
    return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
  }
  llvm_unreachable("every function is above");
}

} // namespace

Status referenceGate(Operation* op, Frame& frame) {
  auto gate = cast<GateOp>(op);
  Array out = frame.value(gate.getX());
  const Array& g = frame.value(gate.getG());
  const int64_t group = out.cols / g.cols;
  for (int64_t t = 0; t < out.rows; ++t)
    for (int64_t i = 0; i < out.cols; ++i)
      out.row(t)[i] = static_cast<float>(out.row(t)[i] * apply(gate.getFunction(), g.row(t)[i / group]));
  frame.set(gate.getResult(), std::move(out));
  return {};
}

} // namespace cortiq::cmf
