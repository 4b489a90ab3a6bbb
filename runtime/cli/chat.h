#pragma once

// The interactive conversation of --chat.

#include "formats/status.h"
#include "runtime/cli/run.h"

namespace cortiq::runtime::cli {

/// Reads one message a line from standard input until its end, and prints each answer. With -p: that one message. Lines
/// "/skill ID", "/blend ID:W,…" and "/task NAME" change what is in force of the model's overlay.
Status run_chat(const RunOptions& options, Loaded& loaded);

} // namespace cortiq::runtime::cli
