#pragma once

// The targets that code is generated for. A target is data; passes see it as the attribute `cmf.target` only.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/status.h"

namespace cortiq::compiler {

/// Facts about a processor.
struct Target {
  std::string_view name;                  ///< the word of --target and of kernel specs
  std::string_view summary;               ///< for `--target help`
  std::vector<std::string_view> features; ///< CPU features the code needs, as /proc/cpuinfo names them
  int64_t vectorBytes;
  std::vector<int64_t> tokenTiles; ///< tokens that kernels are built for, ascending, starting with 1
  std::vector<std::string_view> bf16Features =
      {};                   ///< what kernels on tiles of bf16 need besides; empty: there are none
  bool halfPrompts = false; ///< prompts are multiplied on these in the fast arm, unless it is said otherwise
  int64_t l1Bytes, l2Bytes; ///< data caches of one core
  int64_t cores;
};

/// The same as Target::halfPrompts for GPUs, whose matrices are f16.
inline constexpr bool kHalfPromptsOnGpus = true;

/// Makes kernels on tiles of bf16 part of what is asked of a target that has them; false for others.
bool addBf16Tiles(Target& target);

/// All targets, the plainest first.
std::span<const Target> targetTable();

/// The target called `name`; fails with a sentence that lists the names there are.
StatusOr<Target> findTarget(std::string_view name);

/// What this machine offers, as far as the table asks.
struct Host {
  std::vector<std::string> features;
  int64_t l1Bytes = 0, l2Bytes = 0, cores = 0; ///< 0 = unknown
};

/// Reads the features from /proc/cpuinfo and the cache sizes from the C library.
Host readHost();

/// The last target of the table whose features `host` has, with the host's caches and cores; fails when there is none.
StatusOr<Target> nativeTarget(const Host& host);

/// The targets that `words` names with commas between, in the order of the table; `native` is what `host` can run.
/// Fails for an unknown name, for one that is there twice, and for targets of different machines.
StatusOr<std::vector<Target>> findTargets(std::string_view words, const Host& host);

} // namespace cortiq::compiler
