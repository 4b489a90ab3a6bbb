#include "runtime/overlay/overlay.h"

#include "formats/checked_math.h"
#include "formats/quote.h"

namespace cortiq::runtime {
namespace {

std::string text(const flatbuffers::String* string) {
  return string ? string->str() : std::string();
}

template <class T>
std::vector<T> list(const flatbuffers::Vector<T>* values) {
  return values ? std::vector<T>(values->begin(), values->end()) : std::vector<T>();
}

StatusOr<formats::OverlaySkill> read_skill(const artifact::Skill& row, const artifact::Manifest& manifest) {
  formats::OverlaySkill out{row.id()->str(), text(row.name()), text(row.task()), {}};
  const artifact::SkillDescriptor* d = row.descriptor();
  if (!d)
    return out;
  out.descriptor = {d->unit(), d->layer(), d->rank(), list(d->mean()), list(d->basis()), d->err_mean(), d->err_std()};
  if (d->mean()->size() != manifest.hidden() || d->rank() > manifest.hidden() ||
      d->basis()->size() != uint64_t{d->rank()} * manifest.hidden())
    return invalid("skill " + formats::quote(out.id) + " has a descriptor that does not fit the model's width");
  return out;
}

formats::OverlayMask read_mask(const artifact::Mask& row) {
  formats::OverlayMask out;
  out.name = row.name()->str();
  out.fallback = row.fallback();
  out.layers = row.layers();
  out.ffn_rows = row.ffn_rows();
  out.ffn_width = row.ffn_width();
  out.heads = row.heads();
  out.expert_count = row.expert_count();
  out.ffn = list(row.ffn());
  out.head = list(row.head());
  out.gates = list(row.gates());
  out.experts = list(row.experts());
  return out;
}

} // namespace

StatusOr<formats::OverlayCatalog> read_overlay_catalog(const artifact::Manifest& manifest) {
  formats::OverlayCatalog out;
  if (manifest.skills())
    for (const artifact::Skill* row : *manifest.skills()) {
      CORTIQ_ASSIGN_OR_RETURN(formats::OverlaySkill skill, read_skill(*row, manifest));
      out.skills.push_back(std::move(skill));
    }
  // Bits that the mask's sizes ask for and its rows lack are active, so nothing has to be checked.
  if (manifest.masks())
    for (const artifact::Mask* row : *manifest.masks())
      out.masks.push_back(read_mask(*row));
  if (manifest.routing())
    out.calibration =
        formats::RoutingCalibration{manifest.routing()->temperature(), manifest.routing()->novelty_theta()};
  out.fixed_task = text(manifest.fixed_task());
  return out;
}

} // namespace cortiq::runtime
