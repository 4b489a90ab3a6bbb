#include "compiler/emit/rows/rows.h"

namespace cortiq::compiler {

artifact::LayerGateOpT rowOf(kernel::LayerGateOp op, const ProgramNumbers& numbers) {
  artifact::LayerGateOpT r;
  r.before = numbers.slot(op.getBefore());
  r.after = numbers.slot(op.getAfter());
  r.out = numbers.slot(op.getOut());
  r.layer = op.getLayer();
  return r;
}

artifact::PlaceOpT rowOf(kernel::PlaceOp op, const ProgramNumbers& numbers) {
  artifact::PlaceOpT r;
  r.input = numbers.slot(op.getInput());
  r.from.assign(op.getFrom().begin(), op.getFrom().end());
  setResults(op, numbers, r);
  return r;
}

artifact::TapOpT rowOf(kernel::TapOp op, const ProgramNumbers& numbers) {
  artifact::TapOpT r;
  r.input = numbers.slot(op.getInput());
  r.layer = op.getLayer();
  return r;
}

} // namespace cortiq::compiler
