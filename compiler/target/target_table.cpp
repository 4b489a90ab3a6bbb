#include "compiler/target/target_table.h"

#include <algorithm>

#include "formats/artifact/target_needs.h"

namespace cortiq::compiler {
namespace {

std::vector<std::string_view> featuresOf(std::string_view name) {
  const auto features = formats::find_target_needs(name)->features;
  return {features.begin(), features.end()};
}

/// ELF machine of a target; 0 where nothing is known of it.
uint32_t machineOf(const Target& target) {
  const formats::TargetNeeds* needs = formats::find_target_needs(target.name);
  return needs ? needs->machine : 0;
}

/// Place of a target in the table.
size_t rank(const Target& target) {
  return static_cast<size_t>(std::ranges::find(targetTable(), target.name, [](const Target& row) { return row.name; }) -
                             targetTable().begin());
}

} // namespace

std::span<const Target> targetTable() {
  static const Target table[] = {
      {.name = "x86-64-v3",
       .summary = "x86-64 with AVX2, FMA and F16C: Intel since 2013 (Haswell), AMD since 2015 (Excavator)",
       .features = featuresOf("x86-64-v3"),
       .vectorBytes = 32,
       // Sixteen registers hold the sums of four tokens times sixteen rows; a tile of eight walks the weights twice and
       // was slower (docs/performance.md).
       .tokenTiles = {1, 2, 4},
       .l1Bytes = 32 << 10,
       .l2Bytes = 256 << 10,
       .cores = 1},
      {.name = "avxvnni",
       .summary = "x86-64-v3 with AVX-VNNI: Intel since 2021 (Alder Lake), AMD since 2024 (Zen 5)",
       .features = featuresOf("avxvnni"),
       .vectorBytes = 32,
       .tokenTiles = {1, 2, 4},
       .l1Bytes = 32 << 10,
       .l2Bytes = 1 << 20,
       .cores = 1},
      {.name = "avx512vnni",
       .summary = "AVX-512 with VNNI: Intel servers since 2019 (Cascade Lake), AMD since 2022 (Zen 4)",
       .features = featuresOf("avx512vnni"),
       .vectorBytes = 64,
       .tokenTiles = {1, 2, 4, 8},
       .l1Bytes = 32 << 10,
       .l2Bytes = 1 << 20,
       .cores = 1},
      {.name = "avx512vbmi",
       .summary = "avx512vnni with byte permutations: Intel servers since 2021 (Ice Lake), AMD since 2022 (Zen 4)",
       .features = featuresOf("avx512vbmi"),
       .vectorBytes = 64,
       .tokenTiles = {1, 2, 4, 8},
       .l1Bytes = 32 << 10,
       .l2Bytes = 1 << 20,
       .cores = 1},
      {.name = "amx",
       .summary = "AVX-512 with VNNI and AMX int8 tiles: Intel servers since 2023 (Sapphire Rapids)",
       .features = featuresOf("amx"),
       .vectorBytes = 64,
       // The last are kernels on tiles: a row group is decoded once for up to so many tokens.
       .tokenTiles = {1, 2, 4, 8, 256},
       .bf16Features = {"amx_bf16", "avx512_bf16"},
       .halfPrompts = true,
       .l1Bytes = 48 << 10,
       .l2Bytes = 2 << 20,
       .cores = 1},
      {.name = "armv8",
       .summary = "any 64-bit Arm: Raspberry Pi 3 and 4 (Cortex-A53, A72)",
       .features = featuresOf("armv8"),
       .vectorBytes = 16,
       .tokenTiles = {1, 2, 4},
       .l1Bytes = 32 << 10,
       .l2Bytes = 512 << 10,
       .cores = 1},
      {.name = "dotprod",
       .summary = "64-bit Arm with SDOT: Raspberry Pi 5, phones since 2018 (Cortex-A55, A76), Graviton 2",
       .features = featuresOf("dotprod"),
       .vectorBytes = 16,
       .tokenTiles = {1, 2, 4},
       .l1Bytes = 64 << 10,
       .l2Bytes = 512 << 10,
       .cores = 1},
      {.name = "i8mm",
       .summary = "64-bit Arm with SMMLA: Graviton 3 and later, phones since 2022 (Cortex-A510, A710), Apple M2",
       .features = featuresOf("i8mm"),
       .vectorBytes = 16,
       .tokenTiles = {1, 2, 4, 256}, // the last decodes a row group once, as for amx
       .l1Bytes = 64 << 10,
       .l2Bytes = 1 << 20,
       .cores = 1},
  };
  return table;
}

bool addBf16Tiles(Target& target) {
  target.features.insert(target.features.end(), target.bf16Features.begin(), target.bf16Features.end());
  std::ranges::sort(target.features);
  return !target.bf16Features.empty();
}

StatusOr<Target> findTarget(std::string_view name) {
  std::string known;
  for (const Target& target : targetTable()) {
    if (target.name == name)
      return target;
    known += (known.empty() ? "" : ", ") + std::string(target.name);
  }
  return invalid("there is no target '" + std::string(name) + "'; use native or one of: " + known +
                 ", or vulkan for GPUs");
}

StatusOr<Target> nativeTarget(const Host& host) {
  const Target* best = nullptr;
  std::string_view missing;
  for (const Target& target : targetTable()) {
    auto absent = std::ranges::find_if(target.features, [&](std::string_view feature) {
      return std::ranges::find(host.features, feature) == host.features.end();
    });
    if (absent == target.features.end())
      best = &target;
    else if (missing.empty())
      missing = *absent;
  }
  if (!best)
    return unsupported("this machine lacks the CPU feature '" + std::string(missing) +
                       "' that the plainest target needs; name the target of another machine with --target");
  Target target = *best;
  if (std::ranges::any_of(target.bf16Features, [&](std::string_view feature) {
        return std::ranges::find(host.features, feature) == host.features.end();
      }))
    target.bf16Features.clear();
  target.l1Bytes = host.l1Bytes > 0 ? host.l1Bytes : target.l1Bytes;
  target.l2Bytes = host.l2Bytes > 0 ? host.l2Bytes : target.l2Bytes;
  target.cores = host.cores > 0 ? host.cores : target.cores;
  return target;
}

StatusOr<std::vector<Target>> findTargets(std::string_view words, const Host& host) {
  std::vector<Target> out;
  std::string_view native; // what `native` stands for, where it was there
  for (size_t at = 0; at <= words.size();) {
    const size_t comma = std::min(words.find(',', at), words.size());
    const std::string_view word = words.substr(at, comma - at);
    at = comma + 1;
    CORTIQ_ASSIGN_OR_RETURN(Target target, word == "native" ? nativeTarget(host) : findTarget(word));
    if (word == "native")
      native = target.name;
    const std::string name(target.name);
    if (std::ranges::find(out, target.name, [](const Target& other) { return other.name; }) != out.end())
      return invalid("--target names '" + name + "' twice" + (native == target.name ? ", for native is it here" : "") +
                     "; name each target once");
    if (!out.empty() && machineOf(target) != machineOf(out.front()))
      return invalid("--target names '" + std::string(out.front().name) + "' and '" + name +
                     "', which are different machines; compile an artifact for each");
    out.push_back(std::move(target));
  }
  std::ranges::sort(out, {}, rank);
  return out;
}

} // namespace cortiq::compiler
