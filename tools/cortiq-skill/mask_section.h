#pragma once

// Masks of a CMF file (specification 4.1) as things that can be taken out of one file and put into another.

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/cmf/cmf_file.h"

namespace cortiq::skill {

/// One mask: what the section says of it, and its bits.
struct MaskPart {
  nlohmann::json entry; ///< with the fields that this version does not know
  std::vector<uint8_t> bits;

  std::string name() const { return entry.at("name").get<std::string>(); }
};

struct MaskSection {
  std::string default_task;
  std::vector<MaskPart> masks;

  const MaskPart* find(const std::string& name) const;
  /// The section's bytes; none without masks.
  std::vector<uint8_t> bytes() const;
};

/// The masks of `file`; none where it has no section.
MaskSection read_masks(const formats::CmfFile& file);

/// The index of mask `task`; fails with a list of what there is.
StatusOr<size_t> mask_of(const formats::CmfFile& file, const MaskSection& masks, const std::string& task);

/// Adds `mask` of `from` to the masks of a model with the sizes `base`. What applies when no task is named stays: a
/// model without masks gets one first that leaves everything on. The same mask again changes nothing; another of its
/// name is refused, and so are sizes other than the model's.
Status add_mask(MaskSection& masks, const MaskPart& mask, const formats::CmfFile& from, const formats::CmfFile& base);

} // namespace cortiq::skill
