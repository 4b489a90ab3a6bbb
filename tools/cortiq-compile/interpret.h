#pragma once

// `cortiq-compile --interpret`: what cortiq-run does, on the reference interpreter of the cmf dialect.

#include "formats/status.h"

namespace cortiq::tools {

/// Runs the command line that follows `--interpret`: that of cortiq-run, for a model file. argv[0] is "--interpret".
/// Gives the exit code where the line asked for help or could not be read; else 0 or a failure.
StatusOr<int> interpret(int argc, const char* const* argv);

} // namespace cortiq::tools
