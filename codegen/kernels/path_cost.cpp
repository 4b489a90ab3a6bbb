#include "codegen/kernels/path_cost.h"

#include <algorithm>
#include <cstdio>

#include "formats/artifact/kernel_abi.h"

namespace cortiq::codegen {
namespace {

constexpr std::string_view kWords[] = {"fused", "materialised", "tiles", "bf16"};

/// By how much the materialised path has to be quicker, against the noise of what was measured.
constexpr double kGain = 0.97;

/// The least tokens of a call that are worth a kernel of their own for many.
constexpr uint32_t kLeastTokens = 8;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  return text;
}

/// Picoseconds a weight that `tokens` tokens cost on the materialised path, which serves `tile` tokens at once.
double materialised_cost(const PathCost& cost, uint32_t tokens, uint32_t tile) {
  return cost.decode + cost.materialised * ((tokens + tile - 1) / tile * tile);
}

/// The least number of tokens from which on materialising is quicker, or 0.
uint32_t crossover(const PathCost& cost, uint32_t tile) {
  uint32_t from = 0;
  for (uint32_t tokens = kManyTokens; tokens >= std::max(kLeastTokens, tile + 1); --tokens) {
    if (materialised_cost(cost, tokens, tile) > kGain * cost.fused * tokens)
      break;
    from = tokens;
  }
  return from <= kManyTokens / 2 ? from : 0; // what full chunks alone gain is no more than noise
}

PathChoice fused(std::string why) {
  PathChoice choice;
  choice.why = std::move(why);
  return choice;
}

} // namespace

std::string_view path_word(Path path) {
  return kWords[static_cast<unsigned>(path)];
}

std::optional<Path> find_path(std::string_view word) {
  for (unsigned i = 0; i < std::size(kWords); ++i)
    if (kWords[i] == word)
      return static_cast<Path>(i);
  return std::nullopt;
}

uint64_t materialised_bytes(const KernelSpec& spec) {
  return formats::materialised_group_bytes(spec.k, spec.arm == Arm::kExact);
}

PathChoice choose_path(const PathQuestion& q) {
  if (!has_panel_kernel(q.spec))
    return fused("there is no other kernel for this codec and layout");
  if (q.forced == Path::kFused)
    return fused("asked for");
  const bool on_tiles = q.tiles && has_tile_kernel(q.spec);
  if (on_tiles && q.bf16) {
    PathChoice choice;
    choice.path = Path::kBf16;
    choice.from_tokens = 1;
    choice.why = "the target multiplies matrices of bf16, which prompts may take";
    return choice;
  }
  if (on_tiles && q.forced != Path::kMaterialised) {
    PathChoice choice;
    choice.path = Path::kTiles;
    choice.from_tokens = least_tile_tokens(q.spec.isa);
    choice.why = q.forced ? "asked for" : "the target multiplies matrices of int8";
    return choice;
  }
  if (q.forced == Path::kTiles)
    return fused("tiles were asked for, which this target, codec or arm has no kernels on");
  PathChoice choice;
  const PathCost* cost = path_cost(q.spec);
  if (cost) {
    choice.fused = cost->fused;
    choice.materialised = materialised_cost(*cost, kManyTokens, q.tile) / kManyTokens;
  }
  auto take = [&](uint32_t from, std::string why) {
    // Where there are tiles, they serve what is decoded once.
    choice.path = on_tiles ? Path::kTiles : Path::kMaterialised;
    choice.from_tokens = from;
    choice.why = std::move(why);
    return choice;
  };
  if (q.forced)
    return take(kLeastTokens, "asked for");
  const uint64_t bytes = materialised_bytes(q.spec);
  if (bytes > q.room)
    choice.why = "a decoded row group of " + std::to_string(bytes) + " bytes exceeds the " + std::to_string(q.room) +
                 " that a worker may take";
  else if (!cost)
    choice.why = "no costs were measured for this codec, arm and target";
  else if (const uint32_t from = crossover(*cost, q.tile))
    return take(from, "decoding costs " + number(cost->decode) + " ps a weight once, and each token " +
                          number(cost->materialised) + " instead of " + number(cost->fused));
  else
    choice.why = "decoding once saves too little: each token costs " + number(cost->materialised) + " instead of " +
                 number(cost->fused) + " ps a weight";
  return choice;
}

} // namespace cortiq::codegen
