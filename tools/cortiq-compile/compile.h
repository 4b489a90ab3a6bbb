#pragma once

// A model file to an artifact, or to the text of one of the steps in between.

#include "tools/cortiq-compile/options.h"

namespace cortiq::tools {

Status compile_model(const CompileOptions& options);

/// One kernel of --gemv as an artifact: slot 0 takes the activations (f32), the logits slot holds the result.
Status compile_kernel(const CompileOptions& options);

} // namespace cortiq::tools
