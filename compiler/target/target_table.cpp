#include "compiler/target/target_table.h"

#include <algorithm>

namespace cortiq::compiler {

std::span<const Target> targetTable() {
  static const Target table[] = {
      {.name = "x86-64-v3",
       .summary = "x86-64 with AVX2, FMA and F16C: Intel since 2013 (Haswell), AMD since 2015 (Excavator)",
       .features = {"avx", "avx2", "bmi2", "f16c", "fma"},
       .vectorBytes = 32,
       // Sixteen registers hold the sums of four tokens times sixteen rows; a tile of eight walks the weights twice and
       // was slower (docs/performance.md).
       .tokenTiles = {1, 2, 4},
       .l1Bytes = 32 << 10,
       .l2Bytes = 256 << 10,
       .cores = 1},
      {.name = "avxvnni",
       .summary = "x86-64-v3 with AVX-VNNI: Intel since 2021 (Alder Lake), AMD since 2024 (Zen 5)",
       .features = {"avx", "avx2", "avx_vnni", "bmi2", "f16c", "fma"},
       .vectorBytes = 32,
       .tokenTiles = {1, 2, 4},
       .l1Bytes = 32 << 10,
       .l2Bytes = 1 << 20,
       .cores = 1},
      {.name = "avx512vnni",
       .summary = "AVX-512 with VNNI: Intel servers since 2019 (Cascade Lake), AMD since 2022 (Zen 4)",
       .features = {"avx", "avx2", "avx512_vnni", "avx512bw", "avx512dq", "avx512f", "avx512vl", "bmi2", "f16c", "fma"},
       .vectorBytes = 64,
       .tokenTiles = {1, 2, 4, 8},
       .l1Bytes = 32 << 10,
       .l2Bytes = 1 << 20,
       .cores = 1},
      {.name = "amx",
       .summary = "AVX-512 with VNNI and AMX int8 tiles: Intel servers since 2023 (Sapphire Rapids)",
       .features = {"amx_int8", "amx_tile", "avx", "avx2", "avx512_vnni", "avx512bw", "avx512dq", "avx512f", "avx512vl",
                    "bmi2", "f16c", "fma"},
       .vectorBytes = 64,
       // The last are kernels on tiles: a row group is decoded once for up to so many tokens.
       .tokenTiles = {1, 2, 4, 8, 256},
       .l1Bytes = 48 << 10,
       .l2Bytes = 2 << 20,
       .cores = 1},
  };
  return table;
}

StatusOr<Target> findTarget(std::string_view name) {
  std::string known;
  for (const Target& target : targetTable()) {
    if (target.name == name)
      return target;
    known += (known.empty() ? "" : ", ") + std::string(target.name);
  }
  return invalid("there is no target '" + std::string(name) + "'; use native or one of: " + known);
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
  target.l1Bytes = host.l1Bytes > 0 ? host.l1Bytes : target.l1Bytes;
  target.l2Bytes = host.l2Bytes > 0 ? host.l2Bytes : target.l2Bytes;
  target.cores = host.cores > 0 ? host.cores : target.cores;
  return target;
}

} // namespace cortiq::compiler
