#include "formats/overlay/catalog.h"

#include <algorithm>

namespace cortiq::formats {
namespace {

/// Bit `index` of row `row`; set where the rows end.
bool bit(const std::vector<uint8_t>& bits, uint64_t row, uint64_t width, uint64_t index) {
  const uint64_t at = row * ((width + 7) / 8) + index / 8;
  return index >= width || at >= bits.size() || (bits[at] >> (index % 8) & 1) != 0;
}

template <class List, class Name>
std::optional<uint32_t> find(const List& list, Name name, std::string_view wanted) {
  const auto at = std::find_if(list.begin(), list.end(), [&](const auto& row) { return row.*name == wanted; });
  return at == list.end() ? std::nullopt : std::optional(static_cast<uint32_t>(at - list.begin()));
}

} // namespace

bool OverlayMask::neuron(uint64_t layer, uint64_t index) const {
  return ffn_rows == 0 || bit(ffn, layer % ffn_rows, ffn_width, index);
}

bool OverlayMask::query_head(uint64_t layer, uint64_t index) const {
  return layer >= layers || bit(head, layer, heads, index);
}

bool OverlayMask::gate(uint64_t layer) const {
  return layers == 0 || bit(gates, 0, layers, layer % layers);
}

bool OverlayMask::expert(uint64_t layer, uint64_t index) const {
  return layer >= layers || bit(experts, layer, expert_count, index);
}

std::optional<uint32_t> OverlayCatalog::find_skill(std::string_view id) const {
  return find(skills, &OverlaySkill::id, id);
}

std::optional<uint32_t> OverlayCatalog::find_mask(std::string_view name) const {
  return find(masks, &OverlayMask::name, name);
}

std::optional<uint32_t> OverlayCatalog::default_mask() const {
  for (size_t i = 0; i < masks.size(); ++i)
    if (masks[i].fallback)
      return static_cast<uint32_t>(i);
  return masks.empty() ? std::nullopt : std::optional<uint32_t>(0);
}

} // namespace cortiq::formats
