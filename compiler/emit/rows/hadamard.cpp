#include "compiler/emit/rows/rows.h"

namespace cortiq::compiler {

artifact::HadamardOpT rowOf(kernel::HadamardOp op, const ProgramNumbers& numbers) {
  artifact::HadamardOpT r;
  r.input = numbers.slot(op.getX());
  setResults(op, numbers, r);
  r.block = op.getBlock();
  r.negative.assign((op.getNegative().size() + 7) / 8, 0);
  for (auto [i, negative] : llvm::enumerate(op.getNegative()))
    r.negative[i / 8] |= static_cast<uint8_t>(negative) << i % 8;
  r.inverse = op.getInverse();
  r.half = op.getHalf();
  return r;
}

} // namespace cortiq::compiler
