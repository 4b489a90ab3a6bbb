#pragma once

// What names one generated matrix kernel. Two calls whose specs are equal share one kernel.

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/codec/codec.h"
#include "formats/layout/layout.h"

namespace cortiq::codegen {

/// How activations reach the dot product (formats/artifact/kernel_abi.h states both forms).
enum class Arm : uint8_t {
  kFast,  ///< q8a: int8 codes in groups of 32, integer dots
  kExact, ///< f32 activations, f32 multiply-add
  kWide,  ///< q8k: int8 codes with one scale a record of the codec, integer scales (wide_core.cpp)
  kBf16,  ///< q8a_bf16: bf16 activations and weights, on tiles, for many tokens only (bf16_core.cpp)
};

/// Rows of a tile of tokens. Kernels for so many tokens and more decode a row group once a call and take any number of
/// tokens up to theirs, which KernelArgs states; those for fewer take exactly theirs.
inline constexpr uint32_t kTileTokens = 16;

struct KernelSpec {
  formats::CodecId codec;
  formats::LayoutId layout = formats::LayoutId::kR16;
  uint64_t k = 0;      ///< weights a row
  uint32_t rows = 16;  ///< rows a group: 16, or 1..15 for a short last group
  uint32_t tokens = 1; ///< tokens a call
  Arm arm = Arm::kFast;
  bool bias = false;
  bool residual = false;
  std::string isa = "x86-64-v3"; ///< a name of the target table

  bool operator==(const KernelSpec&) const = default;
};

inline bool takes_many(const KernelSpec& spec) {
  return spec.tokens >= kTileTokens;
}

/// Tokens of such a kernel where the target's list of tiles has none.
inline constexpr uint32_t kManyTokens = 256;

/// The same of kernels on tiles of bf16, which decode a row group less often: once for so many tokens. They serve
/// prompts, of any number of tokens.
inline constexpr uint32_t kBf16Tokens = 512;

/// Tokens from which on a target's kernel on matrix instructions is quicker than those for a few tokens
/// (docs/performance.md).
uint32_t least_tile_tokens(std::string_view isa);

/// The kernel's one name, by the grammar of docs/kernel-names.md:
/// "gemv_f32_q8a_q4_k_r16_k576_1x16_res_v3". It is symbol, registry key, verbose line, test name and bench row.
std::string kernel_name(const KernelSpec& spec);

/// The arm that a codec's kernels are built for under `fast` numerics: codecs that reduce to no integer dot, and
/// matrices in verbatim layout, stay on f32 activations.
Arm fast_arm(const formats::Codec& codec, formats::LayoutId layout);

/// Whether there are kernels on tiles for the spec's codec, layout and arm.
bool has_tile_kernel(const KernelSpec& spec);

/// Whether there are kernels for many tokens on vectors: for row groups without overlay, in both arms.
bool has_panel_kernel(const KernelSpec& spec);

} // namespace cortiq::codegen
