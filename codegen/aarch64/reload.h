#pragma once

#include "dialects/Vec/IR/VecDialect.h"

namespace cortiq::codegen::aarch64 {

/// Gives uses of a load that are far behind each other a load each: to load again costs one instruction, to keep a
/// vector over a record of 256 weights costs a register, and where there are none a store and a load.
void reload_far_uses(vec::KernelOp kernel);

} // namespace cortiq::codegen::aarch64
