#include <algorithm>
#include <cmath>
#include <numbers>

#include "dialects/CMF/Interp/Arithmetic.h"
#include "dialects/CMF/Interp/OpTable.h"

using namespace mlir;

namespace cortiq::cmf {

namespace {

double activate(Activation activation, double x) {
  switch (activation) {
  case Activation::silu:
    return x / (1 + std::exp(-x));
  case Activation::gelu_tanh:
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  case Activation::gelu:
    return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  case Activation::relu:
    return x > 0 ? x : 0;
  case Activation::situ:
  case Activation::swigluoai:
    break; // see gated()
  }
  llvm_unreachable("every activation is above");
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double gated(Activation activation, ActivationNumbers numbers, double gate, double up) {
  const auto [alpha, limit] = numbers;
  switch (activation) {
  case Activation::situ:
    return alpha * std::tanh(gate / alpha) * sigmoid(gate) * (limit > 0 ? limit * std::tanh(up / limit) : up);
  case Activation::swigluoai:
    gate = std::min(gate, limit);
    return gate * sigmoid(alpha * gate) * (std::clamp(up, -limit, limit) + 1);
  default:
    return activate(activation, gate) * up;
  }
}

} // namespace

void applyGlu(Array& gate, const Array& up, Activation activation, ActivationNumbers numbers) {
  for (size_t i = 0; i < gate.data.size(); ++i)
    gate.data[i] = static_cast<float>(gated(activation, numbers, gate.data[i], up.data[i]));
}

Status referenceGlu(Operation* op, Frame& frame) {
  auto glu = cast<GluOp>(op);
  Array out = frame.value(glu.getGate());
  applyGlu(out, frame.value(glu.getUp()), glu.getActivation(), activationNumbers(glu));
  frame.set(glu.getResult(), std::move(out));
  return {};
}

Status referenceActivate(Operation* op, Frame& frame) {
  auto active = cast<ActivateOp>(op);
  Array out = frame.value(active.getX());
  for (float& x : out.data)
    x = static_cast<float>(activate(active.getActivation(), x));
  frame.set(active.getResult(), std::move(out));
  return {};
}

Status referenceAdd(Operation* op, Frame& frame) {
  auto add = cast<AddOp>(op);
  Array out = frame.value(add.getA());
  const Array& b = frame.value(add.getB());
  for (size_t i = 0; i < out.data.size(); ++i)
    out.data[i] += b.data[i];
  frame.set(add.getResult(), std::move(out));
  return {};
}

Status referenceScale(Operation* op, Frame& frame) {
  auto scale = cast<ScaleOp>(op);
  const float factor = static_cast<float>(scale.getFactor().convertToDouble());
  Array out = frame.value(scale.getX());
  for (float& x : out.data)
    x *= factor;
  frame.set(scale.getResult(), std::move(out));
  return {};
}

Status referenceSoftcap(Operation* op, Frame& frame) {
  auto softcap = cast<SoftcapOp>(op);
  const double cap = softcap.getCap().convertToDouble();
  Array out = frame.value(softcap.getX());
  for (float& x : out.data)
    x = static_cast<float>(cap * std::tanh(x / cap));
  frame.set(softcap.getResult(), std::move(out));
  return {};
}

} // namespace cortiq::cmf
