#pragma once

// --skill, --blend and --task.

#include <cstdint>
#include <span>
#include <string>

#include "formats/status.h"
#include "runtime/cli/run.h"

namespace cortiq::runtime::cli {

/// Puts in force what the options ask for. With --skill auto the prompt decides: each skill's score goes to the
/// standard error, and the engine's state is empty afterwards.
Status apply_overlay(const RunOptions& options, std::span<const uint32_t> prompt, Loaded& loaded);

/// Fails where --skill auto has nothing to go by.
Status check_routing(const formats::OverlayCatalog& catalog);

/// What is in force, and the scores of --skill auto, as a JSON object.
std::string overlay_json(const Loaded& loaded);

} // namespace cortiq::runtime::cli
