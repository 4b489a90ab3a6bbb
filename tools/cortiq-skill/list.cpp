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
  const std::string prefix = formats::skill_tensor_name(id, "");
  for (const formats::Tensor& tensor : file.tensors())
    if (tensor.name.starts_with(prefix)) {
      ++out.tensors;
      out.bytes += tensor.data.size();
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
  for (size_t i = 0; i < catalog.masks.size(); ++i)
    masks.push_back({{"name", catalog.masks[i].name}, {"default", fallback == i}});
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
    std::printf("skill %s: %zu tensors, %.1f KiB%s%s%s%s%s\n", skill.id.c_str(),
                base.empty() ? extent.tensors : file.tensors().size(), static_cast<double>(extent.bytes) / 1024,
                skill.name.empty() ? "" : (", " + formats::quote(skill.name)).c_str(),
                skill.task.empty() ? "" : (", task " + skill.task).c_str(),
                skill.descriptor ? ", chosen by --skill auto" : "", base.empty() ? "" : ", cut from ", base.c_str());
  }
  const auto fallback = catalog.default_mask();
  for (size_t i = 0; i < catalog.masks.size(); ++i)
    std::printf("mask %s%s\n", catalog.masks[i].name.c_str(), fallback == i ? " (applies when none is named)" : "");
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
