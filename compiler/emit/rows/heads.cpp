#include "compiler/emit/rows/rows.h"

namespace cortiq::compiler {

artifact::ConcatHeadsOpT rowOf(kernel::ConcatHeadsOp op, const ProgramNumbers& numbers) {
  artifact::ConcatHeadsOpT r;
  r.a = numbers.slot(op.getA());
  r.b = numbers.slot(op.getB());
  r.out = numbers.slot(op.getOut());
  r.heads = op.getHeads();
  return r;
}

artifact::ClusterLogitsOpT rowOf(kernel::ClusterLogitsOp op, const ProgramNumbers& numbers) {
  artifact::ClusterLogitsOpT r;
  r.logits = numbers.slot(op.getLogits());
  r.clusters = numbers.slot(op.getClusters());
  return r;
}

} // namespace cortiq::compiler
