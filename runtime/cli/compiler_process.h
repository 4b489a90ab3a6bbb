#pragma once

// cortiq-compile as a child process: the runtime's tools link no compiler.

#include <string>
#include <vector>

#include "formats/status.h"

namespace cortiq::runtime::cli {

/// Path of the program: beside this one, else on PATH. Fails with one sentence when there is none.
StatusOr<std::string> find_compiler();

/// Runs `program` with `arguments` and waits; its messages go to this program's stderr. When it ends with an exit code
/// of its own it has said why: the failure keeps the code's meaning and has no message.
Status run_compiler(const std::string& program, const std::vector<std::string>& arguments);

/// Becomes `program`; returns only when that failed.
Status become(const std::string& program, const std::vector<std::string>& arguments);

} // namespace cortiq::runtime::cli
