#pragma once

// What would make a model run, or run faster, here.

#include <string>
#include <vector>

#include "tools/cortiq-run/doctor/findings.h"

namespace cortiq::tools {

/// One step a line, each with the words to type where there are some; the most important first.
std::vector<std::string> advise(const Findings& findings);

/// Tokens a second that reading all of the weights once a token allows; 0 when that is unknown, and for
/// weights that a cache may hold.
double decode_ceiling(const Findings& findings);

} // namespace cortiq::tools
