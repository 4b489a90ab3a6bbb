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

StatusOr<std::vector<Tile>> resolve_tiles(const flatbuffers::Vector<uint32_t>& list, const KernelNeeds& needs,
                                          const Resolver& resolver, const char* what) {
  std::vector<Tile> tiles;
  for (const uint32_t index : list) {
    CORTIQ_ASSIGN_OR_RETURN(const KernelRef kernel, resolver.kernel(index, what));
    CORTIQ_RETURN_IF_ERROR(check_kernel(*kernel.entry, needs));
    if (!tiles.empty() && kernel.entry->tokens() <= tiles.back().tokens)
      return invalid(std::string(what) + ": the kernels do not ascend by tokens");
    const bool many = kernel.entry->from_tokens() != 0, bf16 = kernel.entry->act() == artifact::BufferKind::Q8Bf16Act;
    if (many && needs.q8 &&
        needs.input.stride != (bf16 ? formats::bf16_act_layout(needs.weight.cols).bytes
                                    : formats::q8_act_layout(needs.weight.cols).bytes))
      continue;
    tiles.push_back({kernel.entry->tokens(), kernel.function, kernel.entry->from_tokens(),
                     many ? needs.rows * needs.weight.row_bytes : 0, needs.q8, bf16,
                     bf16 ? formats::kBf16KernelGroups : formats::kTileKernelGroups});
  }
  if (tiles.empty() || tiles.front().tokens != 1)
    return invalid(std::string(what) + ": weight " + formats::quote(needs.weight.entry->name()->string_view()) +
                   " has no kernel for " + std::to_string(needs.rows) + " rows and one token");
  return tiles;
}

uint64_t tiles_scratch_bytes(const std::vector<Tile>& tiles, uint64_t cols) {
  uint64_t bytes = formats::kKernelScratchBytes;
  for (const Tile& tile : tiles)
    if (tile.from_tokens != 0)
      bytes = std::max(bytes, tile.bf16 ? formats::bf16_kernel_scratch_bytes(cols, tile.tokens)
                                        : formats::many_kernel_scratch_bytes(cols, tile.tokens, !tile.q8));
  return bytes;
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

} // namespace

void run_tiles(const std::vector<Tile>& tiles, formats::KernelArgs& args, uint64_t tokens, uint64_t batch) {
  const bool many = on_tile_registers(tiles, batch);
  size_t tile = tiles.size() - 1;
  while (tokens > 0) {
    tile = many ? tile : largest_tile(tiles, tokens, tile);
    const uint64_t done = std::min<uint64_t>(tiles[tile].tokens, tokens);
    args.tokens = done;
    run_tile(tiles[tile], args);
    tokens -= done;
    args.act += done * args.act_stride;
    args.out = along(args.out, done * args.out_stride);
    if (args.residual)
      args.residual = along(args.residual, done * args.residual_stride);
  }
}

} // namespace cortiq::runtime
