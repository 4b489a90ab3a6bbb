#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "formats/checked_math.h"
#include "formats/cmf/cmf_file.h"
#include "formats/cmf/signature.h"
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

/// "300 of 512": the bits that are set among the first `used` of each row.
std::string active(std::span<const uint8_t> rows, uint64_t used) {
  const uint64_t row_bytes = formats::ceil_div(used, 8);
  uint64_t set = 0;
  for (uint64_t i = 0; i < rows.size(); ++i) {
    const uint64_t first = i % row_bytes * 8;
    const uint64_t bits = std::min<uint64_t>(8, used - first);
    set += static_cast<uint64_t>(std::popcount(static_cast<uint8_t>(rows[i] & ((1u << bits) - 1))));
  }
  return std::to_string(set) + " of " + std::to_string(row_bytes == 0 ? 0 : rows.size() / row_bytes * used);
}

Json masks_of(const formats::CmfFile& file) {
  const formats::CmfArch& arch = file.arch();
  Json out = Json::array();
  for (const formats::CmfMask& mask : file.masks()->masks) {
    Json& row = out.emplace_back(Json{{"name", mask.name},
                                      {"task_id", mask.task_id},
                                      {"priority", priority_name(mask.priority)},
                                      {"sparsity", mask.sparsity},
                                      {"active_neurons", active(mask.ffn, arch.intermediate_size)},
                                      {"active_heads", active(mask.heads, arch.num_attention_heads)},
                                      {"active_layers", active(mask.gates, arch.num_layers)}});
    if (!mask.experts.empty())
      row["active_experts"] = active(mask.experts, arch.moe->num_experts);
  }
  return out;
}

Json index_of(const std::vector<formats::CmfIndexEntry>& index) {
  Json out = Json::array();
  for (const formats::CmfIndexEntry& entry : index)
    out.push_back({{"task_id", entry.task_id},
                   {"layer", entry.layer},
                   {"ffn_groups", entry.groups.size()},
                   {"heads", entry.heads.size()}});
  return out;
}

Json sections_of(const formats::CmfFile& file) {
  const formats::CmfEnvelope& e = file.envelope();
  const std::pair<const char*, const formats::CmfEnvelope::Section*> sections[] = {
      {"header", &e.header}, {"directory", &e.directory}, {"data", &e.data},
      {"masks", &e.masks},   {"vocab", &e.vocab},         {"index", &e.index}};
  Json out = Json::object();
  for (const auto& [name, section] : sections)
    if (section->size > 0)
      out[name] = {{"offset", section->offset}, {"bytes", section->size}};
  return out;
}

Json skills_of(const formats::CmfFile& file) {
  Json out = Json::array();
  for (const formats::CmfSkillInfo& skill : file.skills()) {
    const std::string prefix = "skill." + skill.id + ".";
    uint64_t tensors = 0, bytes = 0;
    for (const formats::Tensor& tensor : file.tensors())
      if (tensor.name.starts_with(prefix)) {
        tensors += 1;
        bytes += tensor.data.size();
      }
    Json& row = out.emplace_back(Json{{"id", skill.id}, {"tensors", tensors}, {"bytes", bytes}});
    if (!skill.name.empty())
      row["name"] = skill.name;
    if (!skill.kind.empty())
      row["kind"] = skill.kind;
    if (!skill.base_dir_hash.empty())
      row["base_dir_hash"] = skill.base_dir_hash;
  }
  return out;
}

/// What the sidecar claims: checking it means reading the whole file, which --verify does.
std::string signature_of(const formats::CmfFile& file) {
  const auto signature = formats::read_cmf_signature(file.path());
  if (!signature.ok())
    return "damaged: " + signature.status().message();
  if (!*signature)
    return "none";
  return "stated by " + formats::signer_key_hex((*signature)->key) + ", not checked here: see --verify";
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
  if (file.index())
    out.metadata["sparse_index"] = index_of(*file.index());
  out.metadata["sections"] = sections_of(file);
  out.metadata["required_features"] = file.envelope().required_features;
  out.metadata["vocab_bytes"] = file.vocab().size();
  out.metadata["signature"] = signature_of(file);
  return out;
}

} // namespace cortiq::inspect
