#pragma once

// Specs of the dialect as the generators take them.

#include "codegen/kernels/kernel_spec.h"
#include "dialects/Kernel/IR/KernelDialect.h"

namespace cortiq::compiler {

/// The spec of one kernel; `spec` has a tile.
codegen::KernelSpec kernelSpec(kernel::SpecAttr spec);

} // namespace cortiq::compiler
