#include "compiler/emit/rows/rows.h"

namespace cortiq::compiler {

artifact::GateOpT rowOf(kernel::GateOp op, const ProgramNumbers& numbers) {
  artifact::GateOpT r;
  r.x = numbers.slot(op.getX());
  r.g = numbers.slot(op.getG());
  r.function = static_cast<artifact::GateFunction>(op.getFunction());
  setResults(op, numbers, r);
  return r;
}

} // namespace cortiq::compiler
