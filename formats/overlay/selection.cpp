#include "formats/overlay/selection.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "formats/quote.h"

namespace cortiq::formats {
namespace {

constexpr std::string_view kNone = "none";

template <class List, class Name>
std::string names(const List& list, Name name) {
  std::string text;
  for (const auto& row : list)
    text += (text.empty() ? "" : ", ") + printable(row.*name);
  return text.empty() ? "none" : text;
}

StatusOr<uint32_t> skill_index(const OverlayCatalog& catalog, const std::string& id) {
  if (const auto index = catalog.find_skill(id))
    return *index;
  return invalid("the model has no skill " + quote(id) + "; it has: " + names(catalog.skills, &OverlaySkill::id));
}

Status add_blend(const OverlayCatalog& catalog, const std::vector<BlendPart>& blend, OverlaySelection& out) {
  double sum = 0;
  for (const BlendPart& part : blend)
    sum += part.weight;
  if (!std::isfinite(sum))
    return invalid("the weights of the blend have no finite sum");
  if (!(sum > 0))
    return invalid("the weights of the blend have to sum to more than 0, for they are divided by their sum");
  for (const BlendPart& part : blend) {
    CORTIQ_ASSIGN_OR_RETURN(const uint32_t skill, skill_index(catalog, part.skill));
    for (const OverlayShare& share : out.shares)
      if (share.skill == skill)
        return invalid("the blend names skill " + quote(part.skill) + " twice");
    out.shares.push_back({skill, static_cast<float>(part.weight / sum)});
  }
  if (out.shares.size() == 1)
    out.shares[0].weight = 1;
  return {};
}

StatusOr<std::optional<uint32_t>> mask_index(const OverlayCatalog& catalog, const OverlaySelection& selection,
                                             const std::string& task) {
  if (task == kNone && catalog.fixed_task.empty())
    return std::optional<uint32_t>();
  if (!catalog.fixed_task.empty()) {
    if (task.empty() || task == catalog.fixed_task)
      return catalog.fixed_mask();
    return invalid("the model was compiled for task " + quote(catalog.fixed_task) +
                   " alone; compile it without --task to choose while it runs");
  }
  if (!task.empty()) {
    if (const auto index = catalog.find_mask(task))
      return index;
    return invalid("the model has no task " + quote(task) + "; it has: " + names(catalog.masks, &OverlayMask::name));
  }
  if (selection.shares.size() == 1)
    if (const auto own = catalog.find_mask(catalog.skills[selection.shares[0].skill].task))
      return own;
  return catalog.default_mask();
}

} // namespace

StatusOr<std::vector<BlendPart>> parse_blend(std::string_view text) {
  std::vector<BlendPart> out;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const size_t colon = part.rfind(':');
    BlendPart blend;
    if (colon != std::string_view::npos && colon != 0) {
      blend.skill = part.substr(0, colon);
      const char* end = part.data() + part.size();
      const auto [stop, error] = std::from_chars(part.data() + colon + 1, end, blend.weight);
      if (error == std::errc() && stop == end && std::isfinite(blend.weight)) {
        out.push_back(std::move(blend));
        if (comma == std::string_view::npos)
          return out;
        text.remove_prefix(comma + 1);
        continue;
      }
    }
    return invalid("--blend takes skills with their weights as in story:0.7,code:0.3, not " + quote(part));
  }
}

StatusOr<OverlaySelection> select_overlay(const OverlayCatalog& catalog, const OverlayRequest& request) {
  OverlaySelection out;
  if (!request.blend.empty()) {
    if (!request.skill.empty())
      return invalid("--skill and --blend exclude each other");
    CORTIQ_RETURN_IF_ERROR(add_blend(catalog, request.blend, out));
  } else if (!request.skill.empty() && request.skill != kNone) {
    CORTIQ_ASSIGN_OR_RETURN(const uint32_t skill, skill_index(catalog, request.skill));
    out.shares.push_back({skill, 1});
  }
  CORTIQ_ASSIGN_OR_RETURN(out.mask, mask_index(catalog, out, request.task));
  return out;
}

std::string describe_selection(const OverlayCatalog& catalog, const OverlaySelection& selection) {
  std::string text;
  for (const OverlayShare& share : selection.shares) {
    char weight[32] = "";
    if (selection.blends())
      std::snprintf(weight, sizeof(weight), ":%.3g", static_cast<double>(share.weight));
    text += (text.empty() ? (selection.blends() ? "blend " : "skill ") : ",") +
            printable(catalog.skills[share.skill].id) + weight;
  }
  if (text.empty())
    text = "no skill";
  if (!catalog.fixed_task.empty())
    return text + ", task " + printable(catalog.fixed_task);
  return text + (selection.mask ? ", task " + printable(catalog.masks[*selection.mask].name) : ", no mask");
}

} // namespace cortiq::formats
