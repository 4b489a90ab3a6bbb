#pragma once

// The calling contract of generated matrix kernels: shared by the code generators and the runtime, with no other link
// between them. System V calling convention, one argument: a pointer to KernelArgs. A kernel computes, for each of its
// token tile's tokens t and each row r of `groups` row groups,
//
//   out[t][r] = epilogue(sum over k of W[r][k] * act[t][k])
//
// reads nothing beyond what layout.h and the activation layout below state, calls nothing, and keeps no state.

#include <cstddef>
#include <cstdint>

namespace cortiq::formats {

/// Argument block of one kernel call. All strides in bytes.
struct KernelArgs {
  const uint8_t* weights; ///< first row group of this call, in the layout the kernel was built for
  const uint8_t* tensor;  ///< start of the packed tensor (its tensor part), for codecs that have one
  const uint8_t* act;     ///< token 0's activations, in the form of the kernel's arm
  float* out;             ///< token 0, first row of this call
  const float* residual;  ///< token 0, first row of this call; may equal `out`; read only by kernels with "_res"
  const float* bias;      ///< first row of this call; read only by kernels with "_bias"
  uint8_t* scratch;       ///< kKernelScratchBytes of this worker, 64-byte aligned
  uint64_t groups;        ///< row groups of this call, at least 1
  uint64_t act_stride;    ///< from one token's activations to the next
  uint64_t out_stride;    ///< from one token's output row to the next
  uint64_t residual_stride;
  // Read only by kernels on verbatim layouts, which find rows by number and ignore `weights`, and by those whose codec
  // keeps weights beside its row groups.
  uint64_t first_row;   ///< number of this call's first row in its tensor
  uint64_t tensor_rows; ///< rows of the whole tensor
  // Read only by kernels that take a varying number of tokens. Records of q8a follow each other without gaps.
  uint64_t tokens;
};

inline constexpr uint64_t kKernelScratchBytes = 16384;

/// Kernels for a varying number of tokens compute blocks of so many tokens: the records of a whole block have to be
/// readable, whatever those behind the last token hold. They take at most so many row groups a call.
inline constexpr uint64_t kTileKernelTokens = 32, kTileKernelGroups = 4;

/// Whole blocks of tokens.
constexpr uint64_t tile_kernel_tokens(uint64_t tokens) {
  return (tokens + kTileKernelTokens - 1) / kTileKernelTokens * kTileKernelTokens;
}

/// What such a kernel on tiles, for up to `tokens` tokens, needs as scratch instead: room for the decoder and for
/// products, and of each row group for sums and for K weights as bytes with their scales.
inline constexpr uint64_t kTileKernelFixedBytes = 24576;
constexpr uint64_t tile_kernel_scratch_bytes(uint64_t k, uint64_t tokens) {
  return kTileKernelFixedBytes + kTileKernelGroups * (64 * tile_kernel_tokens(tokens) + 1024 * ((k + 31) / 32));
}

/// Room for the sums of a row group of `tokens` tokens.
constexpr uint64_t many_token_sums_bytes(uint64_t tokens) {
  return 64 * tile_kernel_tokens(tokens);
}

/// A row group of K decoded weights: as bytes with their scales, or as floats.
constexpr uint64_t materialised_group_bytes(uint64_t k, bool floats) {
  return 64 + (floats ? 2048 : 1024) * ((k + 31) / 32);
}

/// What a kernel that takes a varying number of tokens needs, on tiles or not.
constexpr uint64_t many_kernel_scratch_bytes(uint64_t k, uint64_t tokens, bool floats) {
  const uint64_t bytes = kKernelScratchBytes + many_token_sums_bytes(tokens) + materialised_group_bytes(k, floats);
  const uint64_t on_tiles = floats ? 0 : tile_kernel_scratch_bytes(k, tokens);
  return bytes < on_tiles ? on_tiles : bytes;
}

/// Kernels on tiles of bf16 take more row groups a call: activations come from beyond the second-level cache once a
/// call. They decode no more of a row at once than the cache holds beside activations.
inline constexpr uint64_t kBf16KernelGroups = 8, kBf16ChunkWeights = 1536;

/// What they need as scratch: room for the decoder, and of each row group for sums and for a chunk of weights.
inline constexpr uint64_t kBf16KernelFixedBytes = 8192;
constexpr uint64_t bf16_kernel_scratch_bytes(uint64_t k, uint64_t tokens) {
  const uint64_t padded = (k + 31) / 32 * 32;
  return kBf16KernelFixedBytes + kBf16KernelGroups * (64 * tile_kernel_tokens(tokens) +
                                                      32 * (padded < kBf16ChunkWeights ? padded : kBf16ChunkWeights));
}

using KernelFn = void (*)(const KernelArgs*);

/// Activations of the `fast` arm, "q8a": one record a token. K is padded with zeros to G = ceil(K/32) groups of 32.
///   int8  codes[32*G]   round half to even of x / scale, within +-127
///   f32   scale[G]      absmax of the group / 127; 0 for an all-zero group
///   f32   msum[G]       scale * float(sum of the group's codes)
///   i32   sum32[G]      sum of the group's codes
///   i32   sum16[2*G]    sums of its two halves
/// padded to a multiple of 64. The arrays follow each other without padding.
struct Q8ActLayout {
  uint64_t groups, scale, msum, sum32, sum16, bytes;
};
constexpr Q8ActLayout q8_act_layout(uint64_t k) {
  const uint64_t g = (k + 31) / 32;
  return {g, 32 * g, 36 * g, 40 * g, 44 * g, (52 * g + 63) / 64 * 64};
}

/// The same with the activations in bf16 behind it, "q8a_bf16":
///   the q8a record, then
///   bf16  values[32*G]  x, to the nearest, halves to even, subnormals become 0
/// padded to an odd multiple of 64: records of tokens in turn do not meet in few sets of a cache.
struct Bf16ActLayout {
  uint64_t values, bytes;
};
constexpr Bf16ActLayout bf16_act_layout(uint64_t k) {
  const Q8ActLayout q8 = q8_act_layout(k);
  return {q8.bytes, (q8.bytes + 64 * q8.groups) | 64};
}

/// Activations with one scale a block of B, "q8k": one record a token, K a multiple of B.
///   int8  codes[K]      round half to even of x / scale, within +-127
///   f32   scale[K/B]    absmax of the block / 127; 0 for an all-zero block
///   i16   sums[K/16]    sums of 16 codes each
/// padded to a multiple of 64. The arrays follow each other without padding.
struct Q8kActLayout {
  int64_t scale, sums, bytes;
};
constexpr Q8kActLayout q8k_act_layout(uint64_t k, uint64_t block) {
  const uint64_t scale = k, sums = scale + 4 * (k / block);
  return {int64_t(scale), int64_t(sums), int64_t((sums + k / 8 + 63) / 64 * 64)};
}

/// Activations of the `exact` arm, "f32": K floats, then zeros to a multiple of 16 floats (64 bytes).
constexpr uint64_t f32_act_bytes(uint64_t k) {
  return (k * 4 + 63) / 64 * 64;
}

} // namespace cortiq::formats
