#pragma once

// From what a user asks for to what is in force.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/overlay/catalog.h"
#include "formats/status.h"

namespace cortiq::formats {

/// One skill of a blend, with its weight as given.
struct BlendPart {
  std::string skill;
  double weight = 0;
};

/// "story:0.7,code:0.3".
StatusOr<std::vector<BlendPart>> parse_blend(std::string_view text);

/// The words of --skill, --blend and --task. Empty: nothing was said.
struct OverlayRequest {
  std::string skill; ///< an id, or "none"; "auto" is settled before (routing.h)
  std::vector<BlendPart> blend;
  std::string task; ///< a mask's name, or "none"
};

struct OverlayShare {
  uint32_t skill = 0; ///< index into the catalog
  float weight = 1;

  bool operator==(const OverlayShare&) const = default;
};

/// What is in force: no skill, one, or several mixed; one mask or none.
struct OverlaySelection {
  std::vector<OverlayShare> shares; ///< weights sum to 1; a single one is 1
  std::optional<uint32_t> mask;

  bool blends() const { return shares.size() > 1; }
  bool operator==(const OverlaySelection&) const = default;
};

/// Finds what `request` names. Without a task: the mask that the skill brings, else the catalog's default. Fails, with
/// a list of what there is, for an unknown name, for skill and blend at once, and for weights without a sum above 0.
StatusOr<OverlaySelection> select_overlay(const OverlayCatalog& catalog, const OverlayRequest& request);

/// "skill story, task general", for people.
std::string describe_selection(const OverlayCatalog& catalog, const OverlaySelection& selection);

} // namespace cortiq::formats
