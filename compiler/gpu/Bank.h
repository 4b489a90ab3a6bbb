#pragma once

// Mixtures of experts whose matrices lie in an expert bank on the GPU (shaders/bank), as they stand in the file: as
// many of them as fit. The CPU runs the others with the program's own stages, and their sum is added on the device.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/gpu/Experts.h"

namespace cortiq::compiler {

/// Why the bank cannot have the experts of `group`; empty when it can. `first` is the first group that it has.
std::string refuseBank(const ExpertGroup& group, const ExpertGroup* first, const GpuBuilder& builder);

/// What `op` of `group` is on the GPU, if it does not vanish in others.
std::optional<GpuCall> bankCall(const ExpertGroup& group, const artifact::OpUnion& op);

/// Floats a token of slots whose size on the GPU is another than the program's.
std::vector<std::pair<uint32_t, uint64_t>> bankStrides(const ExpertGroup& group, const GpuBuilder& builder);

/// The bank's table in the program for the GPU; groups get their places in it. Behind the placing of slots.
Status addBank(std::vector<ExpertGroup>& groups, GpuBuilder& builder, artifact::GpuProgramT& out);

} // namespace cortiq::compiler
