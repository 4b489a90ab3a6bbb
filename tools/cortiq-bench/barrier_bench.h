#pragma once

// What a stage of a step costs when it has nothing to do.

#include <vector>

namespace cortiq::bench {

/// Prints, for each number of threads, nanoseconds a stage: of one item (no barrier), of one item a worker, of sixteen
/// items a worker (how matrix work is cut).
void report_barriers(const std::vector<unsigned>& threads);

} // namespace cortiq::bench
