#pragma once

// Mixtures of experts on the GPU. The operations of one mixture are lowered together: what the CPU gathers, multiplies
// and scatters in six stages are two products of a single token with the matrices that it chose. Of many tokens the
// pairs are sorted by expert, and workgroups take tiles of pairs that share a matrix.

#include <optional>
#include <string>
#include <vector>

#include "compiler/gpu/GpuCall.h"

namespace cortiq::compiler {

struct ExpertGroup {
  const artifact::MoeRouteOpT* route = nullptr;
  const artifact::MaskBitsT* mask = nullptr; ///< which experts may be chosen
  const artifact::MoePlanOpT* plan = nullptr;
  const artifact::MoeMatmulOpT *gate = nullptr, *up = nullptr, *down = nullptr;
  const artifact::MoeGluOpT* glu = nullptr;
  const artifact::MoeCombineOpT* combine = nullptr;
  uint32_t x = kAbsent;     ///< slot of what tokens give the experts
  uint32_t gated = kAbsent; ///< slot of the pairs' rows between the products
  uint32_t experts = 0, chosen = 0;
  uint64_t inner = 0;                                  ///< values of such a row
  std::vector<const artifact::MoeMatmulOpT*> products; ///< all of them, in their order
  std::vector<uint32_t> gathered, gates;               ///< slots that gathering, and gated units, fill on the CPU
  bool pairs = false;                                  ///< product by product (PairExperts.h)
  uint32_t first = kAbsent, last = 0;                  ///< stages
  std::string reason;                                  ///< why the GPU cannot have it
  bool routeInProducts = false;                        ///< of a single token: the first products make the choice
  bool bank = false;                                   ///< its experts lie in the expert bank
  uint32_t bankLayer = 0;                              ///< number among those of the bank
  uint64_t remap = 0;                                  ///< where its table of slots stands among the vectors
};

/// The biases of one role, an expert each.
std::vector<uint32_t> biasesOf(const artifact::MoeMatmulOpT& matmul);
/// Why they cannot be one vector; empty when they can, or there are none.
std::string refuseBiases(const artifact::MoeMatmulOpT& matmul, const GpuBuilder& builder);

/// The choice of experts as a dispatch of its own.
Status lowerRoute(const ExpertGroup& group, GpuBuilder& builder);

/// `d` adds up rows of pairs and all that the combination adds; `constants` say which rows these are.
Status combineDispatch(const ExpertGroup& group, std::vector<codegen::SpecValue> constants, GpuBuilder& builder,
                       artifact::GpuDispatchT& d);

class ExpertGroups {
public:
  ExpertGroups(const artifact::ProgramT& program, const GpuBuilder& builder);

  std::vector<ExpertGroup>& groups() { return groups_; }
  const std::vector<ExpertGroup>& groups() const { return groups_; }
  /// The number of the group that `op` is part of; kAbsent = of none.
  uint32_t of(const artifact::OpUnion& op) const;
  /// What `op` of group `number` is on the GPU, if it does not vanish in others, for a single token or for many.
  std::optional<GpuCall> call(const artifact::OpUnion& op, uint32_t number, bool single) const;
  /// Floats a token of slots whose size on the GPU is another than the program's.
  std::vector<std::pair<uint32_t, uint64_t>> strides(uint32_t maxBatch, const GpuBuilder& builder) const;
  /// Whether products of `slot` decide where a token goes, which 8 bits would change.
  bool decides(uint32_t slot) const;

private:
  void add(const artifact::CallT& call, uint32_t stage);
  std::string refusal(const ExpertGroup& group, const GpuBuilder& builder) const;
  /// Of what they are made.
  std::string refuseExperts(const ExpertGroup& group, const GpuBuilder& builder) const;

  std::vector<ExpertGroup> groups_;
  llvm::DenseMap<uint32_t, uint32_t> byPlan_;
};

} // namespace cortiq::compiler
