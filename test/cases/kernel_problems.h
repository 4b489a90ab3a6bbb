#pragma once

// The list of matrix kernel problems that the unit test and cortiq-bench read: every codec with a decoder, row lengths
// with and without tails, row groups full and short, every token tile.

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kernels/kernel_spec.h"

namespace cortiq::test {

struct KernelProblem {
  codegen::KernelSpec spec;
  uint64_t groups; ///< row groups of the call
};

/// Row lengths to try for a codec: the shortest, one with a tail where the codec permits it, and a longer one.
inline std::vector<uint64_t> row_lengths(const formats::Codec& codec) {
  using formats::CodecId;
  if (codec.id == CodecId::kQ4TP || codec.id == CodecId::kQ2TP || codec.id == CodecId::kQ2TPAffine)
    return {32, 192, 224, 608}; // six records a code word: one word, a part of one, several and a part
  const auto shortest = formats::r16_format(codec, 1);
  if (shortest.ok()) // any length will do
    return {1, 7, 64, 77, 131};
  const uint64_t block = codec.block ? codec.block : 32;
  return block == 256 ? std::vector<uint64_t>{256, 768} : std::vector<uint64_t>{block, 3 * block, 320 / block * block};
}

/// Every problem of one codec on one target.
inline std::vector<KernelProblem> kernel_problems(const formats::Codec& codec, const std::string& isa) {
  std::vector<KernelProblem> problems;
  const bool integer = codegen::fast_arm(codec, formats::LayoutId::kR16) == codegen::Arm::kFast;
  const bool has_groups = formats::r16_format(codec, 256).ok();
  for (uint64_t k : has_groups ? row_lengths(codec) : std::vector<uint64_t>())
    for (uint32_t rows : {16u, 1u, 7u, 8u, 9u, 15u})
      for (uint32_t tokens : {1u, 2u, 4u, 8u})
        for (codegen::Arm arm : {codegen::Arm::kFast, codegen::Arm::kExact}) {
          if (arm == codegen::Arm::kFast && !integer)
            continue;
          // Short groups differ in their loads and stores, not in their tiles: one token and a tile show both.
          if (rows != 16 && tokens != 1 && tokens != 4)
            continue;
          codegen::KernelSpec spec;
          spec.codec = codec.id;
          spec.k = k;
          spec.rows = rows;
          spec.tokens = tokens;
          spec.arm = arm;
          spec.bias = rows == 9 || (rows == 16 && tokens == 2);
          spec.residual = rows == 15 || (rows == 16 && tokens != 1);
          spec.isa = isa;
          problems.push_back({spec, rows == 16 ? 3u : 1u});
        }
  // Rows that start inside a block, and rows of different sizes, exist in the file's own layout only.
  if (codec.flat || !has_groups)
    for (uint64_t k : codec.flat ? std::vector<uint64_t>{1, 50, 77} : row_lengths(codec))
      for (uint32_t rows : {16u, 5u, 9u})
        for (uint32_t tokens : {1u, 2u, 4u}) {
          codegen::KernelSpec spec;
          spec.codec = codec.id;
          spec.layout = formats::LayoutId::kVerbatim;
          spec.k = k;
          spec.rows = rows;
          spec.tokens = tokens;
          spec.arm = codegen::Arm::kExact;
          spec.residual = tokens == 2;
          spec.isa = isa;
          problems.push_back({spec, rows == 16 ? 3u : 1u});
        }
  return problems;
}

} // namespace cortiq::test
