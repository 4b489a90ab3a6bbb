#pragma once

#include <span>

#include "compiler/emit/emit_artifact.h"
#include "formats/status.h"

namespace cortiq::compiler {

/// Whether all programs read the same weights in the same layouts, so that one table and one section serve them. Fails
/// with a sentence that names the first weight that they store differently.
Status checkSharedWeights(std::span<const TargetProgram> programs);

} // namespace cortiq::compiler
