#include "compiler/passes/BufferPlan.h"
#include "compiler/passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace cortiq::compiler {

#define GEN_PASS_DEF_KERNELPLANMEMORY
#include "compiler/passes/Passes.h.inc"

namespace {

class PlanMemory : public impl::KernelPlanMemoryBase<PlanMemory> {
public:
  void runOnOperation() override {
    Builder b(&getContext());
    for (kernel::ProgramOp program : getOperation().getOps<kernel::ProgramOp>()) {
      SmallVector<LiveBuffer> order = liveBuffers(program);
      llvm::sort(order, [](const LiveBuffer& x, const LiveBuffer& y) {
        return std::pair(-x.bytes, x.index) < std::pair(-y.bytes, y.index);
      });
      SmallVector<LiveBuffer> placed; // by offset
      int64_t arena = 0;
      for (LiveBuffer& buffer : order) {
        int64_t offset = 0;
        for (const LiveBuffer& other : placed)
          if (other.aliveWith(buffer) && other.offset < offset + buffer.bytes && offset < other.offset + other.bytes)
            offset = other.offset + other.bytes;
        buffer.offset = offset;
        buffer.op.setOffsetAttr(b.getI64IntegerAttr(offset));
        arena = std::max(arena, offset + buffer.bytes);
        placed.insert(llvm::upper_bound(placed, buffer,
                                        [](const LiveBuffer& x, const LiveBuffer& y) { return x.offset < y.offset; }),
                      buffer);
      }
      program.setArenaBytesPerTokenAttr(b.getI64IntegerAttr(arena));
    }
  }
};

} // namespace
} // namespace cortiq::compiler
