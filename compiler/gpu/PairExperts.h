#pragma once

// Mixtures whose experts are no uniform gate, up and down: of several shapes or codecs, of low rank, or with gate and
// up of two codecs. Every product of the program is one of the GPU, on the pairs of token and choice in their plan's
// tiles; a dispatch has the experts whose matrices are alike.

#include "compiler/gpu/Experts.h"

namespace cortiq::compiler {

/// Why the GPU cannot have it in this way either; empty when it can.
std::string refusePairs(const ExpertGroup& group, const GpuBuilder& builder);
/// What a product or a gated unit of `group` is on the GPU, if it does not vanish in others.
std::optional<GpuCall> pairCall(const artifact::OpUnion& op, const ExpertGroup& group);

} // namespace cortiq::compiler
