#pragma once

// Where what one token has of its own can be left for the steps of any number of tokens, and taken up again.

#include <vector>

#include "compiler/gpu/Experts.h"
#include "compiler/gpu/GpuCall.h"

namespace cortiq::compiler {

/// A unit for each of a program's `count` stages, rising by one at most: `single` and the stages that it was made of do
/// the same work in a unit, and what a unit leaves has the same form in both.
std::vector<uint32_t> findUnits(size_t count, const std::vector<GpuStage>& single,
                                const std::vector<ExpertGroup>& experts);

} // namespace cortiq::compiler
