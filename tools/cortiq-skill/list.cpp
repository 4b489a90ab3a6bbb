#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "formats/cmf/cmf_overlay.h"
#include "formats/quote.h"
#include "tools/cortiq-skill/commands.h"
#include "tools/cortiq-skill/rewrite.h"

namespace cortiq::skill {
namespace {

using formats::CmfFile;
using formats::OverlayCatalog;
using formats::OverlaySkill;

struct Extent {
  size_t tensors = 0;
  uint64_t bytes = 0;
};

Extent extent_of(const CmfFile& file, const std::string& id) {
  Extent out;
  auto add = [&](const formats::Tensor& tensor) {
    ++out.tensors;
    out.bytes += tensor.data.size();
  };
  if (file.envelope().has(formats::CmfFeature::kSkillFile))
    std::for_each(file.tensors().begin(), file.tensors().end(), add); // under plain names
  else
    for (const auto& [index, name] : replacements_of(file, id))
      add(file.tensors()[index]);
  return out;
}

struct Share {
  const char* of;
  uint64_t on = 0, all = 0;
};

/// How much of the model a mask leaves on, neurons and heads counted in the layers that it does not skip.
std::array<Share, 4> shares_of(const formats::OverlayMask& mask) {
  std::array<Share, 4> out{Share{"neurons"}, Share{"heads"}, Share{"layers"}, Share{"experts"}};
  auto count = [](Share& share, bool on) {
    ++share.all;
    share.on += on;
  };
  for (uint64_t row = 0; row < mask.ffn_rows; ++row)
    for (uint64_t i = 0; i < mask.ffn_width; ++i)
      count(out[0], mask.gate(row) && mask.neuron(row, i));
  for (uint64_t layer = 0; layer < mask.layers; ++layer) {
    for (uint64_t i = 0; i < mask.heads; ++i)
      count(out[1], mask.gate(layer) && mask.query_head(layer, i));
    count(out[2], mask.gate(layer));
    for (uint64_t i = 0; i < mask.expert_count; ++i)
      count(out[3], mask.gate(layer) && mask.expert(layer, i));
  }
  return out;
}

std::string base_of(const CmfFile& file, size_t skill) {
  return skill < file.skills().size() ? file.skills()[skill].base_dir_hash : "";
}

void print_json(const CmfFile& file, const OverlayCatalog& catalog) {
  nlohmann::ordered_json skills = nlohmann::ordered_json::array(), masks = nlohmann::ordered_json::array();
  for (size_t i = 0; i < catalog.skills.size(); ++i) {
    const OverlaySkill& skill = catalog.skills[i];
    const Extent extent = extent_of(file, skill.id);
    skills.push_back({{"id", skill.id},
                      {"name", skill.name},
                      {"task", skill.task},
                      {"base", base_of(file, i)},
                      {"routed", skill.descriptor.has_value()},
                      {"tensors", extent.tensors},
                      {"bytes", extent.bytes}});
  }
  const auto fallback = catalog.default_mask();
  for (size_t i = 0; i < catalog.masks.size(); ++i) {
    masks.push_back({{"name", catalog.masks[i].name}, {"default", fallback == i}});
    for (const Share& share : shares_of(catalog.masks[i]))
      if (share.all != 0)
        masks.back()[share.of] = {{"on", share.on}, {"of", share.all}};
  }
  const nlohmann::ordered_json out = {{"key", base_key(file)}, {"skills", skills}, {"masks", masks}};
  std::printf("%s\n", out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void print_text(const CmfFile& file, const OverlayCatalog& catalog) {
  const size_t skills = catalog.skills.size(), masks = catalog.masks.size();
  std::printf("%s: key %s, %zu skill%s, %zu mask%s\n", formats::quote(file.path()).c_str(), base_key(file).c_str(),
              skills, skills == 1 ? "" : "s", masks, masks == 1 ? "" : "s");
  for (size_t i = 0; i < catalog.skills.size(); ++i) {
    const OverlaySkill& skill = catalog.skills[i];
    const Extent extent = extent_of(file, skill.id);
    const std::string base = base_of(file, i);
    std::printf("skill %s: %zu tensors, %.1f KiB%s%s%s%s%s\n", formats::printable(skill.id).c_str(), extent.tensors,
                static_cast<double>(extent.bytes) / 1024,
                skill.name.empty() ? "" : (", " + formats::quote(skill.name)).c_str(),
                skill.task.empty() ? "" : (", task " + formats::printable(skill.task)).c_str(),
                skill.descriptor ? ", chosen by --skill auto" : "", base.empty() ? "" : ", cut from ",
                formats::printable(base).c_str());
  }
  const auto fallback = catalog.default_mask();
  for (size_t i = 0; i < catalog.masks.size(); ++i) {
    std::string shares;
    for (const Share& share : shares_of(catalog.masks[i]))
      if (share.all != 0)
        shares += (shares.empty() ? ": " : ", ") + std::to_string(share.on) + " of " + std::to_string(share.all) + " " +
                  share.of;
    std::printf("mask %s%s%s\n", formats::printable(catalog.masks[i].name).c_str(), shares.c_str(),
                fallback == i ? " (applies when none is named)" : "");
  }
}

} // namespace

Status list(const std::string& path, bool json) {
  CORTIQ_ASSIGN_OR_RETURN(const CmfFile file, CmfFile::open(path));
  StatusOr<OverlayCatalog> catalog = formats::read_cmf_overlay(file);
  if (!catalog.ok())
    return catalog.status().with_prefix(formats::quote(path));
  json ? print_json(file, *catalog) : print_text(file, *catalog);
  return {};
}

} // namespace cortiq::skill
