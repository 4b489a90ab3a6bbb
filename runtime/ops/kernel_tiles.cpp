#include "runtime/ops/kernel_tiles.h"

#include <algorithm>

#include "formats/quote.h"

#if defined(__clang__)
#define CORTIQ_NO_FUNCTION_SANITIZER __attribute__((no_sanitize("function")))
#else
#define CORTIQ_NO_FUNCTION_SANITIZER
#endif

namespace cortiq::runtime {
namespace {

bool takes(const artifact::Kernel& kernel, const KernelNeeds& needs) {
  switch (kernel.act()) {
  case artifact::BufferKind::F32:
    return !needs.q8;
  case artifact::BufferKind::Q8Act:
    return needs.q8;
  case artifact::BufferKind::Q8Bf16Act:
    return needs.q8 && needs.input.bf16 && kernel.from_tokens() != 0;
  default:
    return false;
  }
}

Status check_kernel(const artifact::Kernel& kernel, const KernelNeeds& needs) {
  const WeightRef& weight = needs.weight;
  const bool fits = kernel.rows() == needs.rows && kernel.k() == weight.cols &&
                    kernel.codec() == static_cast<uint16_t>(weight.codec->id) &&
                    kernel.layout() == static_cast<uint8_t>(weight.layout) && takes(kernel, needs) &&
                    kernel.bias() == needs.bias && kernel.residual() == needs.residual;
  if (fits)
    return {};
  return invalid("kernel " + formats::quote(kernel.name()->string_view()) + " does not fit weight " +
                 formats::quote(weight.entry->name()->string_view()));
}

/// The largest that fits, of those up to number `last`; the first for no tokens, which a plan in memory may say.
size_t largest_tile(const std::vector<Tile>& tiles, uint64_t tokens, size_t last = SIZE_MAX) {
  size_t tile = std::min(last, tiles.size() - 1);
  while (tile != 0 && (tiles[tile].from_tokens != 0 ? tiles[tile].from_tokens > tokens : tiles[tile].tokens > tokens))
    --tile;
  return tile;
}

} // namespace

StatusOr<TileSet> resolve_tiles(const flatbuffers::Vector<uint32_t>& list, const KernelNeeds& needs,
                                const Resolver& resolver, const char* what) {
  TileSet set;
  std::vector<Tile>& tiles = set.tiles;
  for (const uint32_t index : list) {
    CORTIQ_ASSIGN_OR_RETURN(const KernelRef kernel, resolver.kernel(index, what));
    CORTIQ_RETURN_IF_ERROR(check_kernel(*kernel.entry, needs));
    if (!tiles.empty() && kernel.entry->tokens() <= (set.half ? set.half->tokens : tiles.back().tokens))
      return invalid(std::string(what) + ": the kernels do not ascend by tokens");
    const bool many = kernel.entry->from_tokens() != 0, half = kernel.entry->act() == artifact::BufferKind::Q8Bf16Act;
    const uint64_t record = !many || !needs.q8 ? 0
                            : half             ? formats::bf16_act_layout(needs.weight.cols).bytes
                                               : formats::q8_act_layout(needs.weight.cols).bytes;
    if (record != 0 && needs.input.stride != record)
      continue;
    const Tile tile{kernel.entry->tokens(),
                    kernel.function,
                    kernel.entry->from_tokens(),
                    many ? needs.rows * needs.weight.row_bytes : 0,
                    needs.q8,
                    half,
                    half ? formats::kBf16KernelGroups : formats::kTileKernelGroups,
                    record};
    if (half)
      set.half = tile;
    else
      tiles.push_back(tile);
  }
  if (tiles.empty() || tiles.front().tokens != 1)
    return invalid(std::string(what) + ": weight " + formats::quote(needs.weight.entry->name()->string_view()) +
                   " has no kernel for " + std::to_string(needs.rows) + " rows and one token");
  return set;
}

uint64_t tiles_scratch_bytes(const TileSet& set, uint64_t cols) {
  uint64_t bytes = formats::kKernelScratchBytes;
  for (const Tile& tile : set.tiles)
    if (tile.from_tokens != 0)
      bytes = std::max(bytes, formats::many_kernel_scratch_bytes(cols, tile.tokens, !tile.q8));
  return set.half ? std::max(bytes, formats::bf16_kernel_scratch_bytes(cols, set.half->tokens)) : bytes;
}

bool on_tile_registers(const std::vector<Tile>& tiles, uint64_t tokens) {
  return tiles.back().from_tokens != 0 && tiles.back().from_tokens <= tokens;
}

uint64_t tokens_a_pass(const std::vector<Tile>& tiles, uint64_t tokens) {
  return std::min<uint64_t>(tokens, tiles[largest_tile(tiles, tokens)].tokens);
}

namespace {

template <class T>
T* along(T* row, uint64_t bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(row) + bytes);
}

// Generated code carries no type mark in front of it, which the sanitizer of function types would read.
CORTIQ_NO_FUNCTION_SANITIZER void run_tile(const Tile& tile, const formats::KernelArgs& args) {
  if (tile.from_tokens == 0)
    return tile.function(&args);
  formats::KernelArgs part = args;
  for (uint64_t group = 0; group < args.groups; group += tile.most_groups) {
    part.groups = std::min(args.groups - group, tile.most_groups);
    tile.function(&part);
    part.weights += part.groups * tile.group_bytes;
    part.out += part.groups * formats::kRowGroup;
    part.residual = part.residual ? part.residual + part.groups * formats::kRowGroup : nullptr;
    part.bias = part.bias ? part.bias + part.groups * formats::kRowGroup : nullptr;
  }
}

/// Calls `tile` for `tokens` tokens, and moves `args` behind them.
void run_tokens(const Tile& tile, formats::KernelArgs& args, uint64_t tokens) {
  args.tokens = tokens;
  run_tile(tile, args);
  args.act += tokens * args.act_stride;
  args.out = along(args.out, tokens * args.out_stride);
  if (args.residual)
    args.residual = along(args.residual, tokens * args.residual_stride);
}

} // namespace

void run_tiles(const TileSet& set, formats::KernelArgs& args, const TokenRun& run) {
  uint64_t left = run.count;
  if (set.half) {
    // Tokens that do not stand side by side go one by one.
    const uint64_t most = args.act_stride == set.half->record_bytes ? set.half->tokens : 1;
    for (uint64_t prompt = std::min(run.prompt, run.count), done; prompt != 0; prompt -= done, left -= done)
      run_tokens(*set.half, args, done = std::min(most, prompt));
  }
  const bool many = on_tile_registers(set.tiles, run.batch);
  size_t tile = set.tiles.size() - 1;
  while (left > 0) {
    tile = many ? tile : largest_tile(set.tiles, left, tile);
    const uint64_t done = std::min<uint64_t>(set.tiles[tile].tokens, left);
    run_tokens(set.tiles[tile], args, done);
    left -= done;
  }
}

} // namespace cortiq::runtime
