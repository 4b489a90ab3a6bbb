#pragma once

#include "compiler/frontend/GgufReader.h"

namespace cortiq::compiler {

/// Granite, dense or, where `experts` says how, of experts.
Status describeGranite(GgufReader& reader, std::optional<ExpertTraits> experts);

} // namespace cortiq::compiler
