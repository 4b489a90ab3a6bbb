#include "compiler/emit/rows/rows.h"

namespace cortiq::compiler {

artifact::EmbedOpT rowOf(kernel::EmbedOp op, const ProgramNumbers& numbers) {
  artifact::EmbedOpT r;
  r.weight = numbers.weight(op.getWeight());
  r.out = numbers.slot(op.getOut());
  r.scale = toFloat(op.getScale());
  return r;
}

artifact::NormOpT rowOf(kernel::NormOp op, const ProgramNumbers& numbers) {
  artifact::NormOpT r;
  r.input = numbers.slot(op.getInput());
  r.add = numbers.slot(op.getAdd());
  r.sum_out = numbers.slot(op.getSum());
  r.weight = numbers.weight(op.getWeight());
  r.eps = toFloat(op.getEps());
  setResults(op, numbers, r);
  r.scale = toFloat(op.getScale());
  r.bias = numbers.weight(op.getBias());
  r.centered = op.getCentered();
  return r;
}

artifact::GluOpT rowOf(kernel::GluOp op, const ProgramNumbers& numbers) {
  artifact::GluOpT r;
  setGatedUnit(op, numbers, r);
  return r;
}

artifact::LogitsOpT rowOf(kernel::LogitsOp op, const ProgramNumbers& numbers) {
  artifact::LogitsOpT r;
  r.input = numbers.slot(op.getInput());
  r.multiplier = toFloat(op.getMultiplier());
  r.softcap = toFloat(op.getSoftcap());
  return r;
}

artifact::AddOpT rowOf(kernel::AddOp op, const ProgramNumbers& numbers) {
  artifact::AddOpT r;
  r.a = numbers.slot(op.getA());
  r.b = numbers.slot(op.getB());
  r.out = numbers.slot(op.getOut());
  r.scale = toFloat(op.getScale());
  return r;
}

} // namespace cortiq::compiler
