#pragma once

// What kernels are built for on each instruction set's targets.

#include "codegen/aarch64/features.h"
#include "codegen/kernels/build_kernel.h"
#include "codegen/x86/features.h"

namespace cortiq::codegen {

inline VectorUnit vector_unit(const X86Features& features) {
  return {.lanes = features.max_vector_bits() / 32,
          .dot4 = features.avx_vnni || features.avx512_vnni,
          .byte_tables = features.avx512_vbmi,
          .tiles = features.amx};
}

inline VectorUnit vector_unit(const Aarch64Features& features) {
  // Weights are read in one direction at a distance that these processors' prefetchers keep; asking for them was
  // measured on x86 only.
  return {.lanes = 4, .dot4 = true, .signed_dot4 = true, .prefetch = false, .row_pairs = features.i8mm};
}

} // namespace cortiq::codegen
