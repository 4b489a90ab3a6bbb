#include <algorithm>

#include "formats/atomic_file.h"
#include "formats/cmf/cmf_overlay.h"
#include "formats/quote.h"
#include "tools/cortiq-skill/commands.h"
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
  const std::string prefix = formats::skill_tensor_name(id, "");
  for (const Tensor& tensor : file.tensors())
    if (tensor.name.starts_with(prefix))
      out.push_back({&tensor, tensor.name.substr(prefix.size())});
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
  CORTIQ_ASSIGN_OR_RETURN(const size_t record, record_of(file, id));
  return nlohmann::json(file.header()["skills"][record]);
}

} // namespace

Status extract(const std::string& path, const std::string& id, const std::optional<std::string>& base_path,
               const std::string& out) {
  CORTIQ_RETURN_IF_ERROR(formats::check_not_input(path, out));
  CORTIQ_ASSIGN_OR_RETURN(const CmfFile file, CmfFile::open(path));
  CORTIQ_ASSIGN_OR_RETURN(const CmfFile base, CmfFile::open(base_path.value_or(path)));
  CORTIQ_RETURN_IF_ERROR(check_base(file));
  CORTIQ_RETURN_IF_ERROR(check_base(base));
  nlohmann::json header = plain_header(file);
  CORTIQ_ASSIGN_OR_RETURN(nlohmann::json entry, entry_of(file, id, base_path.has_value()));
  entry["base_dir_hash"] = base_key(base);
  entry["base_arch"] = base.arch().arch_name;
  header["skills"] = nlohmann::json::array({std::move(entry)});
  formats::CmfWriter writer(std::move(header));
  const std::vector<Replacement> found = replacements(file, id, base);
  if (found.empty())
    return invalid("nothing of skill " + quote(id) + " differs from " + quote(base.path()) +
                   "; name the model that it was made from with --base");
  for (const Replacement& replacement : found)
    copy_tensor(writer, *replacement.tensor, replacement.name);
  writer.set_masks(masks_section(file));
  return writer.write(out);
}

} // namespace cortiq::skill
