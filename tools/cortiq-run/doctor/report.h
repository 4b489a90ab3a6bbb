#pragma once

// The findings, for people and for programs.

#include <string>

#include "tools/cortiq-run/doctor/findings.h"

namespace cortiq::tools {

/// Lines of "what  says"; with `colours` what works is green and what does not red.
std::string report_text(const Findings& findings, bool colours);
/// One JSON object.
std::string report_json(const Findings& findings);

} // namespace cortiq::tools
