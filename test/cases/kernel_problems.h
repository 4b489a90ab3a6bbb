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
  switch (codec.id) {
  case CodecId::kF32:
  case CodecId::kF16:
  case CodecId::kBF16:
  case CodecId::kQ8Row:
  case CodecId::kQ82F:
    return {1, 7, 64, 77, 131};
  case CodecId::kQ4TP: // six records a code word: one word, a part of one, several and a part
    return {32, 192, 224, 608};
  default:
    return codec.block == 256 ? std::vector<uint64_t>{256, 768} : std::vector<uint64_t>{32, 96, 320};
  }
}

/// Every problem of one codec on one target.
inline std::vector<KernelProblem> kernel_problems(const formats::Codec& codec, const std::string& isa) {
  std::vector<KernelProblem> problems;
  const bool integer = codegen::fast_arm(codec, formats::LayoutId::kR16) == codegen::Arm::kFast;
  for (uint64_t k : row_lengths(codec))
    for (uint32_t rows : {16u, 1u, 7u, 8u, 9u, 15u})
      for (uint32_t tokens : {1u, 2u, 4u, 8u})
        for (codegen::Arm arm : {codegen::Arm::kFast, codegen::Arm::kExact}) {
          if (arm == codegen::Arm::kFast && !integer)
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
  // Rows that start inside a block exist in the file's own layout only.
  if (codec.flat)
    for (uint64_t k : {1, 50, 77})
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
