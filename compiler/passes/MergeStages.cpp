#include "compiler/passes/Passes.h"

#include "compiler/passes/StageEffects.h"

using namespace mlir;

namespace cortiq::compiler {

#define GEN_PASS_DEF_KERNELMERGESTAGES
#include "compiler/passes/Passes.h.inc"

namespace {

// A stage of the program with what its calls touch.
struct Merged {
  kernel::StageOp op;
  StageEffects effects;
};

void absorb(Merged& into, kernel::StageOp stage, const StageEffects& effects) {
  Block& from = stage.getBody().front();
  Block& to = into.op.getBody().front();
  to.getOperations().splice(to.end(), from.getOperations());
  into.op.setName((into.op.getName() + ", " + stage.getName()).str());
  into.effects.add(effects);
  stage.erase();
}

class MergeStages : public impl::KernelMergeStagesBase<MergeStages> {
public:
  void runOnOperation() override {
    for (kernel::ProgramOp program : getOperation().getOps<kernel::ProgramOp>()) {
      std::vector<Merged> stages;
      for (kernel::StageOp stage : llvm::make_early_inc_range(program.getBody().front().getOps<kernel::StageOp>())) {
        StageEffects effects = StageEffects::of(stage);
        // The earliest stage behind everything that this one must follow.
        size_t place = stages.size();
        while (place > 0 && !stages[place - 1].effects.conflictsWith(effects))
          --place;
        while (place < stages.size() && !stages[place].op.runsWith(stage))
          ++place;
        if (place == stages.size())
          stages.push_back({stage, std::move(effects)});
        else
          absorb(stages[place], stage, effects);
      }
    }
  }
};

} // namespace
} // namespace cortiq::compiler
