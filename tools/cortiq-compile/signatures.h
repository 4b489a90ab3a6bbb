#pragma once

#include <string>

#include "compiler/frontend/LoadModel.h"
#include "formats/status.h"

namespace cortiq::tools {

/// Refuses a model whose files were changed after they were signed. `key`, 64 hexadecimal digits, is the one that has
/// to have signed it; empty: any, and none at all is no fault. `path` names the model in messages.
Status check_signatures(const compiler::LoadedModel& model, const std::string& path, const std::string& key);

} // namespace cortiq::tools
