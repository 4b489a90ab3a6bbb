#pragma once

// GET /metrics, as Prometheus reads it.

#include <string>

#include "tools/cortiq-serve/engine/scheduler.h"

namespace cortiq::serve {

/// Opens what the numbers are read from: before a sandbox forbids it.
void open_metrics();

std::string metrics_text(const SchedulerState& state);

} // namespace cortiq::serve
