#pragma once

// Threads for a measurement, each bound to a processor of its own.

#include <functional>

namespace cortiq::runtime {

/// Runs work(0) … work(threads - 1) at the same time, thread i bound to the i-th processor of the process's affinity
/// (again from the first when there are fewer). False, and nothing has run, when the system refuses a thread.
bool run_bound(unsigned threads, const std::function<void(unsigned)>& work);

} // namespace cortiq::runtime
