#include <algorithm>

#include "formats/cmf/cmf_overlay.h"
#include "formats/quote.h"
#include "tools/cortiq-skill/commands.h"
#include "tools/cortiq-skill/mask_section.h"
#include "tools/cortiq-skill/rewrite.h"

namespace cortiq::skill {
namespace {

using formats::CmfFile;
using formats::quote;
using formats::Tensor;

struct Replacement {
  const Tensor* tensor;
  std::string name; ///< of what it replaces
};

/// The tensors of a skill: those with its prefix, or those that differ from the base's.
std::vector<Replacement> replacements(const CmfFile& file, const std::string& id, const CmfFile& base) {
  std::vector<Replacement> out;
  for (auto& [index, name] : replacements_of(file, id))
    out.push_back({&file.tensors()[index], name});
  if (!out.empty())
    return out;
  for (const Tensor& tensor : file.tensors()) {
    const Tensor* other = base.find(tensor.name);
    const bool same = other && other->type_code == tensor.type_code && other->shape == tensor.shape &&
                      std::equal(tensor.data.begin(), tensor.data.end(), other->data.begin(), other->data.end());
    if (!same && !tensor.name.starts_with("skill."))
      out.push_back({&tensor, tensor.name});
  }
  return out;
}

/// The record of the skill. A model without any that is held against a base is a fine-tuned one: its record starts
/// here.
StatusOr<nlohmann::json> entry_of(const CmfFile& file, const std::string& id, bool has_base) {
  if (has_base && formats::skill_ids(file).empty())
    return nlohmann::json{{"id", id}};
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<size_t> record, record_of(file, id));
  return record ? nlohmann::json(file.header()["skills"][*record]) : nlohmann::json{{"id", id}};
}

/// A model and what a skill or mask of it is bound to.
struct Source {
  CmfFile file, base;

  /// The header of a standalone file with the one record `entry`.
  nlohmann::json header(nlohmann::json entry) const {
    nlohmann::json out = plain_header(file);
    entry["base_dir_hash"] = base_key(base);
    entry["base_arch"] = base.arch().arch_name;
    out["skills"] = nlohmann::json::array({std::move(entry)});
    return out;
  }
};

StatusOr<Source> open_source(const std::string& path, const std::optional<std::string>& base_path,
                             const std::string& out) {
  CORTIQ_ASSIGN_OR_RETURN(CmfFile file, CmfFile::open(path));
  CORTIQ_ASSIGN_OR_RETURN(CmfFile base, CmfFile::open(base_path.value_or(path)));
  CORTIQ_RETURN_IF_ERROR(check_no_part(file, out));
  CORTIQ_RETURN_IF_ERROR(check_no_part(base, out));
  CORTIQ_RETURN_IF_ERROR(check_base(file));
  CORTIQ_RETURN_IF_ERROR(check_base(base));
  return Source{std::move(file), std::move(base)};
}

} // namespace

Status extract(const std::string& path, const std::string& id, const std::optional<std::string>& base_path,
               const std::string& out) {
  if (id.empty() || id == "none" || id == "auto")
    return invalid("--id " + quote(id) + " cannot name a skill; give it another");
  CORTIQ_ASSIGN_OR_RETURN(const Source source, open_source(path, base_path, out));
  CORTIQ_ASSIGN_OR_RETURN(nlohmann::json entry, entry_of(source.file, id, base_path.has_value()));
  formats::CmfWriter writer(source.header(std::move(entry)));
  const std::vector<Replacement> found = replacements(source.file, id, source.base);
  if (found.empty())
    return invalid("nothing of skill " + quote(id) + " differs from " + quote(source.base.path()) +
                   "; name the model that it was made from with --base");
  for (const Replacement& replacement : found)
    copy_tensor(writer, *replacement.tensor, replacement.name);
  writer.set_masks(masks_section(source.file));
  return writer.write(out);
}

Status extract_mask(const std::string& path, const std::string& task, const std::optional<std::string>& base_path,
                    const std::string& out) {
  CORTIQ_ASSIGN_OR_RETURN(const Source source, open_source(path, base_path, out));
  MaskSection masks = read_masks(source.file);
  CORTIQ_ASSIGN_OR_RETURN(const size_t index, mask_of(source.file, masks, task));
  formats::CmfWriter writer(source.header({{"id", task}, {"input_mask_task", task}}));
  const MaskSection alone{task, {std::move(masks.masks[index])}};
  const std::vector<uint8_t> section = alone.bytes();
  writer.set_masks(section);
  return writer.write(out);
}

} // namespace cortiq::skill
