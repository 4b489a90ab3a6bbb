#pragma once

#include "formats/status.h"
#include "runtime/cli/run_options.h"

namespace cortiq::tools {

/// Prints what this machine offers (CPU, instruction sets, threads, memory, compiler) and whether the file, if one is
/// named, can run here.
Status run_doctor(const runtime::cli::RunOptions& options);

} // namespace cortiq::tools
