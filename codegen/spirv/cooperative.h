#pragma once

// Modules on cooperative matrices, from the words of one extension to those of another.

#include <cstdint>
#include <vector>

#include "formats/status.h"

namespace cortiq::codegen {

/// A module of SPV_NV_cooperative_matrix as one of SPV_KHR_cooperative_matrix; a module without such matrices stays as
/// it is. There a matrix's type says which operand of a product it can be: in `words` each type has to be that of one
/// operand only, which a product says.
StatusOr<std::vector<uint32_t>> to_khr_cooperative(std::vector<uint32_t> words);

} // namespace cortiq::codegen
