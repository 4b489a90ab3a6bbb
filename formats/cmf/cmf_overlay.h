#pragma once

// The skills, masks and routing data of a CMF file (specification 4.1 to 4.5) as an overlay catalog.

#include <string>
#include <string_view>

#include "formats/cmf/cmf_file.h"
#include "formats/overlay/catalog.h"

namespace cortiq::formats {

/// Skills in the order of the header's records, then those that only tensors named "skill.ID.…" show; masks as the
/// section has them, also those that switch nothing off. Fails for descriptors that do not fit the model.
StatusOr<OverlayCatalog> read_cmf_overlay(const CmfFile& file);

/// "skill." + id + "." + name, the name of a replacement of tensor `name`.
std::string skill_tensor_name(std::string_view id, std::string_view name);

/// The ids of file.skills() and of tensors named "skill.ID.model.…" or "skill.ID.lm_head.…" that have no record.
std::vector<std::string> skill_ids(const CmfFile& file);

} // namespace cortiq::formats
