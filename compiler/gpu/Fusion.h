#pragma once

// What is one step where a batch is one token.

#include <vector>

#include "compiler/gpu/Experts.h"
#include "compiler/gpu/GpuCall.h"

namespace cortiq::compiler {

/// What the lowering knows of slots.
struct SlotUse {
  uint32_t first = kAbsent, last = 0; ///< stages that touch it
  bool gpu = false;                   ///< the GPU touches it
  bool natural = false;               ///< somebody needs that order
  bool lanes = false;                 ///< somebody reads that one
};

class Fusion {
public:
  /// `eightBits` says of a slot whether it can be made in 8 bits for all who read it.
  Fusion(const GpuBuilder& builder, ExpertGroups& experts, const std::vector<SlotUse>& uses,
         std::function<bool(uint32_t slot)> eightBits)
      : builder_(builder), experts_(experts), uses_(uses), eightBits_(std::move(eightBits)) {}

  /// Joins stages of `stages`, in this order: gated units with the products that they join, norms with the product in
  /// front, heads with attention, choices of experts with their products, and whatever does not wait for its neighbour.
  void run(std::vector<GpuStage>& stages);

private:
  void joinGatedUnits(std::vector<GpuStage>& stages) const;
  bool joins(const artifact::MatmulPartT& a, const artifact::MatmulPartT& b, const artifact::GluOpT& glu,
             const std::vector<GpuStage>& stages) const;
  void joinNorms(std::vector<GpuStage>& stages) const;
  bool takesNorm(const GpuStage& stage, const GpuStage& next, const std::vector<GpuStage>& stages) const;
  void joinHeads(std::vector<GpuStage>& stages) const;
  void joinChoices(std::vector<GpuStage>& stages);
  void joinNeighbours(std::vector<GpuStage>& stages) const;

  const GpuBuilder& builder_;
  ExpertGroups& experts_;
  const std::vector<SlotUse>& uses_;
  std::function<bool(uint32_t slot)> eightBits_;
};

/// The call of `parts`, which are some of an operation's.
GpuCall productCall(std::vector<const artifact::MatmulPartT*> parts, const GpuBuilder& builder);

} // namespace cortiq::compiler
