#pragma once

// What the steps of a GPU do: calls of the program, and what stands for several of them.

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/gpu/GpuBuilder.h"

namespace cortiq::compiler {

struct GpuCall {
  std::vector<uint32_t> reads, writes; ///< slots
  std::vector<uint32_t> lanes;         ///< of `reads`, those that it takes in lane order
  bool writesLanes = false;            ///< its results may be in lane order
  /// Matrices, and the slots that each reads and writes.
  struct Product {
    uint32_t input, weight, out;
  };
  std::vector<Product> products;
  bool takesUnfinished = true; ///< its products can read a row that lacks its norm's factor
  EightBits eightBits = EightBits::kNever;
  uint64_t groupValues = 0; ///< with kWholeGroups: values that one workgroup's part of a result counts, 0 = all of it
  std::function<Status(GpuBuilder&)> lower;

  /// The call of the program, where it is one.
  const artifact::OpUnion* op = nullptr;
  /// For a single token: the same with a norm of its result `normed` in it. Empty where it has none.
  std::function<Status(GpuBuilder&, const artifact::NormOpT&)> lowerWithNorm = nullptr;
  uint32_t normed = kAbsent;
  uint32_t choosesFor = kAbsent; ///< of a choice of experts: the group of experts
  uint32_t routed = kAbsent;     ///< of the first products of a group of experts: the group

  /// Whether it reads `slot` in lane order for something else than products, which alone know rows that are in 8 bits
  /// or lack the factor of their norm.
  bool takesWhole(uint32_t slot) const {
    return std::ranges::find(lanes, slot) != lanes.end() &&
           std::ranges::find(products, slot, &Product::input) == products.end();
  }
};

/// A stage of the program, or several that are one step.
struct GpuStage {
  uint32_t first, last; ///< stages of the program
  bool head = false;
  std::string name;
  std::string reason;                    ///< why the CPU runs it; empty = the GPU does
  std::vector<uint32_t> reads, writes;   ///< slots that the program's stage reads and writes
  std::vector<GpuCall> calls;            ///< of the GPU
  std::vector<uint32_t> covers = {};     ///< stages of the program whose work it does, or a part of that
  std::vector<uint32_t> unfinished = {}; ///< slots that it leaves without the factor of their norm
};

} // namespace cortiq::compiler
