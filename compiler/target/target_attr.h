#pragma once

// A target as the attribute that passes read.

#include "compiler/target/target_table.h"
#include "dialects/CMF/IR/CMF.h"

namespace cortiq::compiler {

cmf::TargetAttr targetAttr(mlir::MLIRContext* context, const Target& target);

} // namespace cortiq::compiler
