#pragma once

// GET /metrics, as Prometheus reads it.

#include <string>

#include "tools/cortiq-serve/engine/scheduler.h"

namespace cortiq::serve {

std::string metrics_text(const SchedulerState& state);

} // namespace cortiq::serve
