#include "compiler/emit/overlay_rows.h"

namespace cortiq::compiler {

namespace {

std::unique_ptr<artifact::SkillT> skillRow(const formats::OverlaySkill& skill) {
  auto row = std::make_unique<artifact::SkillT>();
  row->id = skill.id;
  row->name = skill.name;
  row->task = skill.task;
  if (skill.descriptor) {
    row->descriptor = std::make_unique<artifact::SkillDescriptorT>();
    row->descriptor->unit = skill.descriptor->unit;
    row->descriptor->layer = skill.descriptor->layer;
    row->descriptor->rank = skill.descriptor->rank;
    row->descriptor->mean = skill.descriptor->mean;
    row->descriptor->basis = skill.descriptor->basis;
    row->descriptor->err_mean = skill.descriptor->err_mean;
    row->descriptor->err_std = skill.descriptor->err_std;
  }
  return row;
}

std::unique_ptr<artifact::MaskT> maskRow(const formats::OverlayMask& mask) {
  auto row = std::make_unique<artifact::MaskT>();
  row->name = mask.name;
  row->fallback = mask.fallback;
  row->layers = mask.layers;
  row->ffn_rows = mask.ffn_rows;
  row->ffn_width = mask.ffn_width;
  row->heads = mask.heads;
  row->expert_count = mask.expert_count;
  row->ffn = mask.ffn;
  row->head = mask.head;
  row->gates = mask.gates;
  row->experts = mask.experts;
  return row;
}

} // namespace

void addOverlayRows(const formats::OverlayCatalog& catalog, artifact::ManifestT& manifest) {
  for (const formats::OverlaySkill& skill : catalog.skills)
    manifest.skills.push_back(skillRow(skill));
  for (const formats::OverlayMask& mask : catalog.masks)
    manifest.masks.push_back(maskRow(mask));
  if (catalog.calibration) {
    manifest.routing = std::make_unique<artifact::RoutingCalibrationT>();
    manifest.routing->temperature = catalog.calibration->temperature;
    manifest.routing->novelty_theta = catalog.calibration->theta;
  }
  manifest.fixed_task = catalog.fixed_task;
}

} // namespace cortiq::compiler
