#include "compiler/passes/StageEffects.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace cortiq::compiler {

StageEffects StageEffects::of(Operation* op) {
  StageEffects result;
  op->walk([&](MemoryEffectOpInterface call) {
    SmallVector<MemoryEffects::EffectInstance> effects;
    call.getEffects(effects);
    for (const MemoryEffects::EffectInstance& effect : effects) {
      if (!effect.getValue())
        continue;
      (isa<MemoryEffects::Write>(effect.getEffect()) ? result.writes : result.reads).insert(effect.getValue());
    }
  });
  return result;
}

void StageEffects::add(const StageEffects& other) {
  reads.insert(other.reads.begin(), other.reads.end());
  writes.insert(other.writes.begin(), other.writes.end());
}

bool StageEffects::conflictsWith(const StageEffects& other) const {
  auto touched = [](const StageEffects& e, Value v) { return e.reads.contains(v) || e.writes.contains(v); };
  return llvm::any_of(writes, [&](Value v) { return touched(other, v); }) ||
         llvm::any_of(other.writes, [&](Value v) { return touched(*this, v); });
}

} // namespace cortiq::compiler
