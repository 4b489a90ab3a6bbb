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
  uint32_t from_tokens = 0;                          ///< not 0: it takes any number of tokens from this up to `tokens`
  uint64_t group_bytes = 0;                          ///< of a row group's weights, where a call takes only some groups
  bool q8 = false;                                   ///< reads quantized activations
  bool bf16 = false;                                 ///< … in bf16
  uint64_t most_groups = formats::kTileKernelGroups; ///< row groups a call takes at most, where a call takes only some
};

/// What the kernels of a matrix must have been made for.
struct KernelNeeds {
  const WeightRef& weight;
  uint64_t rows; ///< a group: kRowGroup, or those of a short last one
  bool q8, bias, residual;
  const SlotRef& input; ///< the tokens' activations
};

/// The kernels that `list` names, ascending by tokens, the first of one token; fails where one does not fit the weight.
/// A kernel for a varying number of tokens is left out where the activations have gaps.
StatusOr<std::vector<Tile>> resolve_tiles(const flatbuffers::Vector<uint32_t>& list, const KernelNeeds& needs,
                                          const Resolver& resolver, const char* what);

/// Scratch that the kernels need for a weight of `cols` columns.
uint64_t tiles_scratch_bytes(const std::vector<Tile>& tiles, uint64_t cols);

/// Whether the kernel for a varying number of tokens takes the first pass of `tokens` tokens.
bool on_tile_registers(const std::vector<Tile>& tiles, uint64_t tokens);

/// Of `tokens` tokens those that the first pass of the kernels over the weights serves.
uint64_t tokens_a_pass(const std::vector<Tile>& tiles, uint64_t tokens);

/// Calls the largest tiles that fit for `tokens` tokens. `args` describes the first token and is moved along. Tokens
/// that are a part of `batch` use the kernel for a varying number of tokens where the batch does.
void run_tiles(const std::vector<Tile>& tiles, formats::KernelArgs& args, uint64_t tokens, uint64_t batch = 0);

} // namespace cortiq::runtime
