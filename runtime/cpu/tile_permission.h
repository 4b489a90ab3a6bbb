#pragma once

// Tile registers are 8 KiB of state a thread, which the system saves only for processes that asked for it.

#include <span>
#include <string>

#include "formats/status.h"

namespace cortiq::runtime {

/// Asks the system to let this process use tiles, where `features` has any that needs them; once is enough for all
/// threads. Fails with one sentence where the system refuses.
Status request_tile_permission(std::span<const std::string> features);

} // namespace cortiq::runtime
