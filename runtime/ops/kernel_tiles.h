#pragma once

// The generated kernels of one matrix, by token tile, and how a run of tokens is cut into tiles.

#include <cstdint>
#include <vector>

#include "formats/artifact/kernel_abi.h"
#include "formats/status.h"
#include "runtime/loader/resolver.h"

namespace cortiq::runtime {

struct Tile {
  uint32_t tokens;
  formats::KernelFn function;
};

/// What the kernels of a matrix must have been made for.
struct KernelNeeds {
  const WeightRef& weight;
  uint64_t rows; ///< a group: kRowGroup, or those of a short last one
  bool q8, bias, residual;
};

/// The kernels that `list` names, ascending by tokens, the first of one token; fails where one does not fit the weight.
StatusOr<std::vector<Tile>> resolve_tiles(const flatbuffers::Vector<uint32_t>& list, const KernelNeeds& needs,
                                          const Resolver& resolver, const char* what);

/// Calls the largest tiles that fit for `tokens` tokens. `args` describes the first token and is moved along.
void run_tiles(const std::vector<Tile>& tiles, formats::KernelArgs& args, uint64_t tokens);

} // namespace cortiq::runtime
