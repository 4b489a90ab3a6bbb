#pragma once

// The paths that a matrix product can take, what they cost, and which one is taken.
//   fused         weights are decoded in registers, once for each few tokens (1 to 8, the target's token tiles)
//   materialised  a row group is decoded once a call into the worker's memory, then multiplied with all tokens
//   tiles         as materialised, multiplied on the target's tile registers
//   bf16          as tiles, of bf16 and so with other sums: for the tokens of prompts, however few; others are fused
// The first always exists and serves few tokens on every path.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "codegen/kernels/kernel_spec.h"

namespace cortiq::codegen {

enum class Path : uint8_t { kFused, kMaterialised, kTiles, kBf16 };

/// The words of the paths, as options and listings have them.
std::string_view path_word(Path path);
/// The path of a word; `auto` and unknown words have none.
std::optional<Path> find_path(std::string_view word);

/// Picoseconds of one core, for a weight of a row group.
struct PathCost {
  float fused;        ///< a token, by the target's largest tile
  float materialised; ///< a token, decoding apart
  float decode;       ///< a call: decoding into memory
};

/// What was measured for the spec's codec, arm and target, or estimated where nothing was; null: nothing is known but
/// the fused kernels.
const PathCost* path_cost(const KernelSpec& spec);
const PathCost* estimated_path_cost(const KernelSpec& spec);

/// Bytes of a worker's memory that a row group of the spec takes when it is materialised.
uint64_t materialised_bytes(const KernelSpec& spec);

struct PathQuestion {
  KernelSpec spec;            ///< codec, layout, k, arm and target; tile and epilogue do not matter
  uint32_t tile = 1;          ///< tokens of the largest fused kernel
  bool tiles = false;         ///< the target has kernels on tiles
  bool bf16 = false;          ///< … of bf16, and prompts may take them
  uint64_t room = 0;          ///< bytes of a worker's memory that a row group may take
  std::optional<Path> forced; ///< what was asked for
};

struct PathChoice {
  Path path = Path::kFused;
  uint32_t from_tokens = 0; ///< tokens of a call from which the path serves; 0: never
  /// Picoseconds a weight and token with kManyTokens tokens; 0: not known.
  double fused = 0, materialised = 0;
  std::string why; ///< one sentence without end
};

/// Which path serves many tokens, and why. What was forced but does not exist falls back to fused, and says so.
PathChoice choose_path(const PathQuestion& question);

} // namespace cortiq::codegen
