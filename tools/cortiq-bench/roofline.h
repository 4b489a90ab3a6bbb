#pragma once

// Where operations stand below the machine's two ceilings, as a picture.

#include <string>
#include <vector>

#include "formats/status.h"
#include "tools/cortiq-bench/machine/machine.h"
#include "tools/cortiq-bench/profile_report.h"

namespace cortiq::bench {

/// One operation of one phase.
struct RooflinePoint {
  std::string label;
  size_t phase;     ///< number of its phase
  double intensity; ///< operations a byte
  double tops;      ///< 10^12 operations a second
  double ceiling;   ///< the lower of what the bytes and its unit allow
};

std::vector<RooflinePoint> roofline_points(const std::vector<PhaseProfile>& phases, const Ceilings& ceilings);

/// Writes an SVG with both axes logarithmic: the slope is the read bandwidth, the levels are units' peaks.
Status write_roofline(const std::string& path, const std::string& title, const std::vector<PhaseProfile>& phases,
                      const Ceilings& ceilings);

} // namespace cortiq::bench
