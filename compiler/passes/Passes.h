#pragma once

// All passes: create…() for each, and registerCortiqPasses() for tools. Passes.td describes them.

#include "mlir/Pass/Pass.h"

#include "dialects/CMF/IR/CMF.h"
#include "dialects/Kernel/IR/KernelDialect.h"

namespace cortiq::compiler {

#define GEN_PASS_DECL
#include "compiler/passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/Passes.h.inc"

} // namespace cortiq::compiler
