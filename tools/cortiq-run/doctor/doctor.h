#pragma once

// cortiq-run --doctor: what this machine offers, whether the file fits it, and what would make it faster.

#include "formats/status.h"
#include "runtime/cli/run_options.h"

namespace cortiq::tools {

/// Prints the report. Fails when the file that was named cannot run here.
Status run_doctor(const runtime::cli::RunOptions& options);

} // namespace cortiq::tools
