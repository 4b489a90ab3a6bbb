#include "tools/cortiq-skill/rewrite.h"

#include <algorithm>

#include "formats/atomic_file.h"
#include "formats/cmf/cmf_overlay.h"
#include "formats/cmf/hash64.h"
#include "formats/quote.h"

namespace cortiq::skill {

using formats::CmfFeature;
using formats::CmfFile;
using formats::quote;

std::string base_key(const CmfFile& file) {
  const formats::CmfEnvelope& envelope = file.envelope();
  const auto directory = file.file_bytes(0).subspan(envelope.directory.offset, envelope.directory.size);
  return formats::hex64(envelope.directory_hash != 0 ? envelope.directory_hash : formats::hash64(directory));
}

std::span<const uint8_t> masks_section(const CmfFile& file) {
  const formats::CmfEnvelope::Section& masks = file.envelope().masks;
  return masks.size == 0 ? std::span<const uint8_t>() : file.file_bytes(0).subspan(masks.offset, masks.size);
}

StatusOr<std::optional<size_t>> record_of(const CmfFile& file, const std::string& id) {
  std::string known;
  const std::vector<std::string> ids = formats::skill_ids(file);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == id)
      return i < file.skills().size() ? std::optional(i) : std::nullopt;
    known += (known.empty() ? "" : ", ") + formats::printable(ids[i]);
  }
  return invalid(quote(file.path()) + " has no skill " + quote(id) + "; it has: " + (known.empty() ? "none" : known));
}

std::map<size_t, std::string> replacements_of(const CmfFile& file, const std::string& id) {
  const std::string prefix = formats::skill_tensor_name(id, "");
  std::vector<std::string> others; // prefixes of skills whose ids begin with this one
  for (const std::string& other : formats::skill_ids(file))
    if (other.starts_with(id + "."))
      others.push_back(formats::skill_tensor_name(other, ""));
  std::map<size_t, std::string> out;
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const std::string& name = file.tensors()[i].name;
    if (name.starts_with(prefix) &&
        std::none_of(others.begin(), others.end(), [&](const std::string& other) { return name.starts_with(other); }))
      out[i] = name.substr(prefix.size());
  }
  return out;
}

Status check_no_part(const CmfFile& file, const std::string& out) {
  for (size_t i = 0; i < file.file_count(); ++i)
    CORTIQ_RETURN_IF_ERROR(formats::check_not_input(file.file_path(i), out));
  return {};
}

std::string task_of(const CmfFile& file, size_t record) {
  const nlohmann::json& entry = file.header()["skills"][record];
  const auto task = entry.find("input_mask_task");
  return task != entry.end() && task->is_string() ? task->get<std::string>() : "";
}

nlohmann::json plain_header(const CmfFile& file) {
  nlohmann::json header = file.header();
  for (const char* key : {"shard", "section_hashes", "segments"})
    header.erase(key);
  return header;
}

void copy_tensor(formats::CmfWriter& writer, const formats::Tensor& tensor, std::string name) {
  writer.add_tensor(std::move(name), tensor.type_code, tensor.shape, tensor.data);
}

Status check_base(const CmfFile& file) {
  if (file.envelope().has(CmfFeature::kSkillFile))
    return invalid(quote(file.path()) + " is a standalone skill file, where a base model is asked for");
  if (file.envelope().has(CmfFeature::kGenome))
    return unsupported(quote(file.path()) + " is a genome, whose skills are part of what its hashes cover");
  return {};
}

} // namespace cortiq::skill
