#pragma once

// Lookup skills: records whose answers stand in four tensors (4.6). Private to the CMF reader.

#include <string>

#include "formats/cmf/cmf_file.h"
#include "formats/json.h"
#include "formats/status.h"

namespace cortiq::formats {

/// The `lookup` object of the skill `id` and its tensors' content. `where` names the record in messages.
Status check_cmf_lookup(const CmfFile& file, const Json& lookup, const std::string& id, const std::string& where);

} // namespace cortiq::formats
