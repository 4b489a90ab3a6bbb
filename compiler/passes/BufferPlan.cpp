#include "compiler/passes/BufferPlan.h"

#include "compiler/passes/StageEffects.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace cortiq::compiler {

llvm::SmallVector<LiveBuffer> liveBuffers(kernel::ProgramOp program) {
  llvm::DenseMap<Value, std::pair<unsigned, unsigned>> ranges;
  auto touch = [&](Value v, unsigned stage) {
    auto [entry, fresh] = ranges.try_emplace(v, stage, stage);
    entry->second.second = stage;
  };
  unsigned index = 0;
  std::optional<unsigned> draft;
  for (Operation& op : program.getBody().front()) {
    if (isa<kernel::AllocOp>(op))
      continue;
    if (auto stage = dyn_cast<kernel::StageOp>(op); stage && stage.getDraft() && !draft)
      draft = index;
    if (auto end = dyn_cast<kernel::ReturnOp>(op)) {
      // The trunk's logits are read before the first draft stage runs.
      touch(end.getLogits(), draft.value_or(index));
      if (end.getDraft())
        touch(end.getDraft(), index);
      continue;
    }
    StageEffects effects = StageEffects::of(&op);
    // A runtime may make gates beside the products that they are made of: their buffers keep clear of what those read.
    op.walk([&](kernel::GluOp glu) {
      for (Value v : {glu.getOut(), glu.getAct()})
        if (v && glu.getUp() && index > 0)
          touch(v, index - 1);
    });
    for (Value v : effects.reads)
      touch(v, index);
    for (Value v : effects.writes)
      touch(v, index);
    ++index; // kernel.return counts as a stage behind the last one
  }
  llvm::SmallVector<LiveBuffer> buffers;
  for (auto op : program.getBody().front().getOps<kernel::AllocOp>()) {
    auto [first, last] = ranges.lookup(op.getBuffer());
    auto type = cast<kernel::BufferType>(op.getBuffer().getType());
    if (op.getInput())
      first = 0;
    buffers.push_back({op, buffers.size(), type.bytesPerToken(), int64_t(op.getOffset().value_or(0)), first, last});
  }
  return buffers;
}

} // namespace cortiq::compiler
