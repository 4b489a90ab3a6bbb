#include "compiler/passes/BufferPlan.h"
#include "compiler/passes/KernelSpecs.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/StageEffects.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace cortiq::compiler {

#define GEN_PASS_DEF_KERNELVERIFYPROGRAM
#include "compiler/passes/Passes.h.inc"

namespace {

// Barriers stand where they must, and nothing is read before it was written.
LogicalResult checkOrder(kernel::ProgramOp program) {
  llvm::DenseSet<Value> written;
  for (auto alloc : program.getBody().front().getOps<kernel::AllocOp>())
    if (alloc.getInput())
      written.insert(alloc.getBuffer());
  bool head = false, draft = false;
  for (kernel::StageOp stage : program.getBody().front().getOps<kernel::StageOp>()) {
    if (draft && !stage.getDraft())
      return stage.emitOpError() << "comes after a draft stage: it would never see what that one saw";
    head = head && draft == stage.getDraft();
    draft = stage.getDraft();
    if (head && !stage.getHead())
      return stage.emitOpError() << "comes after a head stage: it would run on tokens that skipped that one";
    head = stage.getHead();
    StageEffects before;
    for (Operation& call : stage.getBody().front()) {
      StageEffects effects = StageEffects::of(&call);
      if (before.conflictsWith(effects))
        return call.emitOpError() << "touches a buffer that another call of its stage writes";
      for (Value v : effects.reads)
        if (!written.contains(v))
          return call.emitOpError() << "reads a buffer that no earlier stage wrote";
      before.add(effects);
    }
    written.insert(before.writes.begin(), before.writes.end());
  }
  auto end = cast<kernel::ReturnOp>(program.getBody().front().back());
  if (!written.contains(end.getLogits()) || (end.getDraft() && !written.contains(end.getDraft())))
    return end.emitOpError() << "names a buffer that no stage wrote";
  return success();
}

LogicalResult checkPlan(kernel::ProgramOp program) {
  auto buffers = liveBuffers(program);
  for (size_t i = 0; i < buffers.size(); ++i) {
    LiveBuffer& a = buffers[i];
    if (!a.op.getOffset() || !program.getArenaBytesPerToken())
      return a.op.emitOpError() << "has no place yet: run kernel-plan-memory";
    if (a.offset + a.bytes > int64_t(*program.getArenaBytesPerToken()))
      return a.op.emitOpError() << "ends behind the arena";
    for (size_t j = 0; j < i; ++j)
      if (a.aliveWith(buffers[j]) && a.offset < buffers[j].offset + buffers[j].bytes &&
          buffers[j].offset < a.offset + a.bytes)
        return a.op.emitOpError() << "overlaps another buffer that is alive at the same time";
  }
  return success();
}

class VerifyProgram : public impl::KernelVerifyProgramBase<VerifyProgram> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto programs = module.getOps<kernel::ProgramOp>();
    if (programs.empty() || std::next(programs.begin()) != programs.end()) {
      module.emitError() << "must hold one kernel.program";
      return signalPassFailure();
    }
    if (failed(checkOrder(*programs.begin())) || failed(checkPlan(*programs.begin())))
      return signalPassFailure();
    WalkResult result = module.walk([](Operation* op) {
      auto call = dyn_cast<kernel::CallOp>(op);
      auto expert = dyn_cast<kernel::ExpertOp>(op);
      if ((call && !call.getKernelsAttr()) || (expert && !expert.getKernelsAttr())) {
        op->emitOpError() << "lists no kernels: run kernel-dedupe";
        return WalkResult::interrupt();
      }
      if (auto define = dyn_cast<kernel::DefineOp>(op)) {
        std::string name = codegen::kernel_name(kernelSpec(define.getSpec()));
        if (name != define.getSymName()) {
          define.emitOpError() << "must be named @" << name << " for its spec";
          return WalkResult::interrupt();
        }
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
  }
};

} // namespace
} // namespace cortiq::compiler
