#pragma once

// The instruction sets whose kernels are tested and measured on x86.

#include "codegen/kernels/build_kernel.h"

namespace cortiq::test {

struct X86Target {
  const char* name;
  codegen::VectorUnit unit;
};

/// Targets by the vectors that their kernels are built for, the plainest first.
inline constexpr X86Target kX86Targets[] = {
    {"x86-64-v3", {.lanes = 8, .dot4 = false}},
    {"avxvnni", {.lanes = 8, .dot4 = true}},
    {"avx512vnni", {.lanes = 16, .dot4 = true}},
    {"avx512vbmi", {.lanes = 16, .dot4 = true, .byte_tables = true}},
};

} // namespace cortiq::test
