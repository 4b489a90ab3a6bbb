#include <nlohmann/json.hpp>

#include "formats/cmf/cmf_file.h"
#include "tools/cortiq-inspect/listing.h"

namespace cortiq::inspect {
namespace {

using formats::Json;

const char* priority_name(formats::CmfMaskPriority priority) {
  switch (priority) {
  case formats::CmfMaskPriority::kFallback:
    return "Fallback";
  case formats::CmfMaskPriority::kNormal:
    return "Normal";
  case formats::CmfMaskPriority::kPrimary:
    return "Primary";
  }
  return "";
}

Json masks_of(const formats::CmfFile& file) {
  Json out = Json::array();
  for (const formats::CmfMask& mask : file.masks()->masks)
    out.push_back({{"name", mask.name},
                   {"task_id", mask.task_id},
                   {"priority", priority_name(mask.priority)},
                   {"sparsity", mask.sparsity},
                   {"experts", !mask.experts.empty()}});
  return out;
}

Json skills_of(const formats::CmfFile& file) {
  Json out = Json::array();
  for (const formats::CmfSkillInfo& skill : file.skills()) {
    Json& row = out.emplace_back(Json{{"id", skill.id}});
    if (!skill.name.empty())
      row["name"] = skill.name;
    if (!skill.kind.empty())
      row["kind"] = skill.kind;
    if (!skill.base_dir_hash.empty())
      row["base_dir_hash"] = skill.base_dir_hash;
  }
  return out;
}

} // namespace

Listing list_cmf(const formats::CmfFile& file) {
  Listing out;
  out.format = "CMF 2";
  out.architecture = file.arch().arch_name;
  for (size_t i = 0; i < file.file_count(); ++i) {
    out.files.push_back(file.file_path(i));
    out.file_bytes += file.file_bytes(i).size();
  }
  out.metadata = file.header();
  // These are shown from what the reader made of them: the records hold long base64 texts, the section is binary.
  out.metadata.erase("skills");
  if (!file.skills().empty())
    out.metadata["skills"] = skills_of(file);
  if (file.masks()) {
    out.metadata["masks"] = masks_of(file);
    out.metadata["default_task"] = file.masks()->default_task;
  }
  out.metadata["required_features"] = file.envelope().required_features;
  out.metadata["vocab_bytes"] = file.vocab().size();
  return out;
}

} // namespace cortiq::inspect
