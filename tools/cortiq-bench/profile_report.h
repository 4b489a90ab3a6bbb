#pragma once

// A phase's profile held against the machine: a table, JSON, a trace.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "formats/status.h"
#include "runtime/session/profile.h"
#include "tools/cortiq-bench/machine/machine.h"

namespace cortiq::bench {

/// What was measured of one phase on one number of threads.
struct PhaseProfile {
  std::string phase; ///< "prefill", "decode"
  runtime::Profile profile;
  double outside = 0; ///< seconds between steps

  /// Seconds of a step, what is between steps included.
  double step_seconds() const;
  /// Seconds of a step if each operation took as long as its bytes at the read bandwidth or its arithmetic at its
  /// unit's peak, whichever is more.
  double floor_seconds(const Ceilings& ceilings) const;
};

/// The same of all calls of one operation; 0 when it has neither.
double floor_seconds(const runtime::Profile::Row& row, const Ceilings& ceilings);

nlohmann::ordered_json profile_json(const PhaseProfile& phase, const Ceilings& ceilings);

void print_profile(const PhaseProfile& phase, const Ceilings& ceilings);

/// Writes the profiles' events in the trace event format that browsers show (chrome://tracing, ui.perfetto.dev): a
/// process a phase, a line a thread.
Status write_trace(const std::string& path, const std::vector<PhaseProfile>& phases);

} // namespace cortiq::bench
