#include "runtime/vulkan/in_force.h"

#include <algorithm>

#include "runtime/overlay/overlay.h"

namespace cortiq::runtime::vulkan {
namespace {

using Skills = flatbuffers::Vector<uint32_t>;

bool has(const Skills* list, uint32_t skill) {
  return list && std::find(list->begin(), list->end(), skill) != list->end();
}

bool kept(const formats::OverlayMask& mask, const artifact::MaskBits& bits, uint64_t column) {
  const uint64_t bit = bits.first() + (bits.group() == 0 ? 0 : column / bits.group());
  switch (bits.kind()) {
  case artifact::MaskKind::Heads:
    return mask.query_head(bits.layer(), bit);
  case artifact::MaskKind::Experts:
    return mask.expert(bits.layer(), bit);
  case artifact::MaskKind::Ffn:
    break;
  }
  return mask.neuron(bits.layer(), bit);
}

} // namespace

InForce in_force(const StepContext& context) {
  InForce out;
  out.taps = context.taps != nullptr;
  if (!context.overlay)
    return out;
  const formats::OverlaySelection& selection = context.overlay->selection;
  out.blend = selection.blends();
  if (selection.shares.size() == 1)
    out.skill = selection.shares[0].skill;
  if (context.overlay->mask)
    out.mask = *selection.mask;
  return out;
}

bool runs(const artifact::GpuDispatch& dispatch, const StepContext& context) {
  const artifact::GpuWhen* when = dispatch.when();
  if (!when)
    return true;
  const InForce now = in_force(context);
  const formats::OverlayMask* mask = context.overlay ? context.overlay->mask : nullptr;
  const auto blends = [&](const Skills* list) {
    return now.blend && std::ranges::any_of(context.overlay->selection.shares,
                                            [&](const formats::OverlayShare& share) { return has(list, share.skill); });
  };
  return (when->skill() == kNoIndex || when->skill() == now.skill) && !has(when->unless(), now.skill) &&
         (!when->blend() || when->blend()->size() == 0 || blends(when->blend())) && !blends(when->unless_blend()) &&
         (when->gate() == kNoIndex || !mask || mask->gate(when->gate())) &&
         (when->skipped() == kNoIndex || (mask && !mask->gate(when->skipped()))) && (!when->masked() || mask) &&
         (when->tap() == kNoIndex || now.taps);
}

std::vector<uint32_t> mask_words(const artifact::GpuProgram& program, const formats::OverlayCatalog& catalog) {
  const uint64_t each = program.mask_words();
  std::vector<uint32_t> out((catalog.masks.size() + 1) * each, UINT32_MAX);
  for (size_t m = 0; m < catalog.masks.size(); ++m)
    for (uint32_t i = 0; program.mask_rows() && i < program.mask_rows()->size(); ++i) {
      const artifact::GpuMaskRow& row = *program.mask_rows()->Get(i);
      for (uint32_t c = 0; c < row.columns(); ++c)
        if (!kept(catalog.masks[m], *row.bits(), c))
          out[m * each + row.start() + c / 32] &= ~(1u << c % 32);
    }
  return out;
}

} // namespace cortiq::runtime::vulkan
