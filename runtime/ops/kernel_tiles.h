#pragma once

// The generated kernels of one matrix, by token tile, and how a run of tokens is cut into tiles.

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/artifact/kernel_abi.h"
#include "formats/status.h"
#include "runtime/executor/program.h"
#include "runtime/loader/resolver.h"

namespace cortiq::runtime {

struct Tile {
  uint32_t tokens;
  formats::KernelFn function;
  uint32_t from_tokens = 0;                          ///< not 0: it takes any number of tokens from this up to `tokens`
  uint64_t group_bytes = 0;                          ///< of a row group's weights, where a call takes only some groups
  bool q8 = false;                                   ///< reads quantized activations
  bool half = false;                                 ///< … in bf16: for prompts only, and for any number of tokens
  uint64_t most_groups = formats::kTileKernelGroups; ///< row groups a call takes at most, where a call takes only some
  uint64_t record_bytes = 0;                         ///< from token to token, where a call takes no other distance
};

/// The kernels of a matrix.
struct TileSet {
  std::vector<Tile> tiles; ///< ascending by tokens, the first of one token
  /// What makes the products of a prompt's tokens; none: the others do.
  std::optional<Tile> half = std::nullopt;
};

/// Tokens whose products are to be made.
struct TokenRun {
  uint64_t count;
  uint64_t prompt = 0; ///< the first so many are a prompt's
  uint64_t batch = 0;  ///< tokens other than a prompt's of the batch that these are a part of
};

/// What the kernels of a matrix must have been made for.
struct KernelNeeds {
  const WeightRef& weight;
  uint64_t rows; ///< a group: kRowGroup, or those of a short last one
  bool q8, bias, residual;
  const SlotRef& input; ///< the tokens' activations
};

/// The kernels that `list` names; fails where one does not fit the weight. A kernel for a varying number of tokens is
/// left out where the activations have gaps.
StatusOr<TileSet> resolve_tiles(const flatbuffers::Vector<uint32_t>& list, const KernelNeeds& needs,
                                const Resolver& resolver, const char* what);

/// Scratch that the kernels need for a weight of `cols` columns.
uint64_t tiles_scratch_bytes(const TileSet& set, uint64_t cols);

/// Whether the kernel for a varying number of tokens takes the first pass of `tokens` tokens.
bool on_tile_registers(const std::vector<Tile>& tiles, uint64_t tokens);

/// Of `tokens` tokens those that the first pass of the kernels over the weights serves.
uint64_t tokens_a_pass(const std::vector<Tile>& tiles, uint64_t tokens);

/// How many of a shape's tokens the kernel for prompts serves.
inline uint64_t half_tokens(const TileSet& set, const StepShape& shape) {
  return set.half ? shape.prompt : 0;
}

/// Makes the products of the run: those of a prompt's tokens by the kernel for prompts where there is one, the others
/// by the largest tiles that fit. `args` describes the first token and is moved along. Tokens that are a part of a
/// batch use the kernel for a varying number of tokens where the batch does.
void run_tiles(const TileSet& set, formats::KernelArgs& args, const TokenRun& run);

} // namespace cortiq::runtime
