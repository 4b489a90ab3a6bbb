#pragma once

// An artifact as something to run.

#include <string>

#include "formats/status.h"
#include "runtime/cli/run.h"
#include "runtime/cli/run_options.h"

namespace cortiq::runtime::cli {

/// Loads `path` and makes a session as `options` ask.
StatusOr<Loaded> load_artifact_engine(const std::string& path, const RunOptions& options);

} // namespace cortiq::runtime::cli
