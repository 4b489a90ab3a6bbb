#pragma once

// Calls that depend on the skill or mask in force: dispatches of all their forms, each with what has to be in force.

#include <vector>

#include "compiler/gpu/GpuCall.h"

namespace cortiq::compiler {

/// One form of a call.
struct GpuForm {
  GpuCall call;
  artifact::GpuWhenT when;
};

/// Whether what `call` does depends on what is in force.
bool dependsOnOverlay(const artifact::CallT& call);
/// The operations that may run for `call`, its own before those of skills, each with its condition.
std::vector<std::pair<const artifact::OpUnion*, artifact::GpuWhenT>> formsOf(const artifact::CallT& call);
/// All forms as one call, whose results `mask` cuts, if there is one.
GpuCall joinForms(std::vector<GpuForm> forms, const artifact::MaskBitsT* mask);
/// The same call, which a mask's skipped layer leaves out.
GpuCall underGate(GpuCall call, uint32_t layer);

} // namespace cortiq::compiler
