#pragma once

// The artifact's own symbol table, against which the program's kernels are held: both say where a kernel stands.

#include <cstdint>
#include <map>
#include <span>
#include <string_view>

#include "formats/status.h"

namespace cortiq::runtime {

struct CodeSymbol {
  uint64_t offset; ///< from the start of the file
  uint64_t bytes;
};

/// Functions of .dynsym by name; `image` are the bytes of the file before the weights. Names point into it.
StatusOr<std::map<std::string_view, CodeSymbol>> read_code_symbols(std::span<const uint8_t> image);

} // namespace cortiq::runtime
