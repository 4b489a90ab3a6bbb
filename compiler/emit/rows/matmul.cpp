#include "compiler/emit/rows/rows.h"

namespace cortiq::compiler {

artifact::MatmulOpT rowOf(kernel::MatmulOp op, const ProgramNumbers& numbers) {
  artifact::MatmulOpT r;
  for (auto call : op.getBody().front().getOps<kernel::CallOp>()) {
    auto part = std::make_unique<artifact::MatmulPartT>();
    part->weight = numbers.weight(call.getWeight());
    part->kernels = numbers.kernels(*call.getKernels());
    part->tail_kernels = numbers.kernels(*call.getTails());
    part->out = numbers.slot(call.getOut());
    part->bias = numbers.weight(call.getBias());
    part->residual = numbers.slot(call.getResidual());
    part->input = numbers.slot(call.getInput());
    part->input_column = call.getInputColumn();
    part->out_column = call.getOutColumn();
    r.parts.push_back(std::move(part));
  }
  return r;
}

artifact::QuantizeOpT rowOf(kernel::QuantizeOp op, const ProgramNumbers& numbers) {
  artifact::QuantizeOpT r;
  r.input = numbers.slot(op.getInput());
  setResults(op, numbers, r);
  r.column_scale = numbers.weight(op.getColumnScale());
  return r;
}

} // namespace cortiq::compiler
