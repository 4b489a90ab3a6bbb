#pragma once

// The interactive conversation of --chat.

#include "formats/status.h"
#include "runtime/cli/run.h"

namespace cortiq::runtime::cli {

/// Reads one message a line from standard input until its end, and prints each answer. With -p: that one message.
Status run_chat(const RunOptions& options, Loaded& loaded);

} // namespace cortiq::runtime::cli
