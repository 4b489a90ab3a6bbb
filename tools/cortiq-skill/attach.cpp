#include <cstdio>

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

// What a skill may not change of its base (specification 1.9, 4.7): recurrent cores and bounded attention.
constexpr const char* kIdentity[] = {"linear_core",          "anchor_core",
                                     "layer_types",          "linear_conv_kernel_dim",
                                     "linear_num_key_heads", "linear_num_value_heads",
                                     "linear_key_head_dim",  "linear_value_head_dim"};

Status check_identity(const CmfFile& base, const CmfFile& skill) {
  const nlohmann::json &ours = base.header()["arch"], &theirs = skill.header()["arch"];
  auto value = [](const nlohmann::json& arch, const char* key) { return arch.value(key, nlohmann::json()); };
  if (value(ours, "linear_core").is_null() && value(ours, "anchor_core").is_null() &&
      value(theirs, "linear_core").is_null() && value(theirs, "anchor_core").is_null())
    return {};
  for (const char* key : kIdentity)
    if (value(ours, key) != value(theirs, key))
      return invalid(quote(skill.path()) + " differs from its base in arch." + key);
  return {};
}

/// The one record that binds `skill` to its base.
StatusOr<size_t> binding_record(const CmfFile& skill) {
  for (size_t i = 0; i < skill.skills().size(); ++i)
    if (!skill.skills()[i].base_dir_hash.empty())
      return i;
  return invalid(quote(skill.path()) + " is no standalone skill file: no record of it names a base");
}

void note_unused(const CmfFile& base, const CmfFile& skill) {
  for (const Tensor& tensor : skill.tensors())
    if (!base.find(tensor.name))
      std::fprintf(stderr, "cortiq-skill: note: the base has no tensor %s, so the skill's is left out\n",
                   quote(tensor.name).c_str());
}

/// The specialist: the base's tensors in their order, the skill's where it has one of that name.
Status write_specialist(const CmfFile& base, const CmfFile& skill, size_t record, const std::string& out) {
  nlohmann::json header = plain_header(skill);
  header["skills"][record].erase("base_dir_hash");
  formats::CmfWriter writer(std::move(header));
  for (const Tensor& tensor : base.tensors()) {
    const Tensor* replacement = skill.find(tensor.name);
    copy_tensor(writer, replacement ? *replacement : tensor, tensor.name);
  }
  writer.set_masks(masks_section(skill));
  writer.set_vocab(base.vocab());
  return writer.write(out);
}

/// The base with the skill's tensors beside its own.
Status write_embedded(const CmfFile& base, const CmfFile& skill, size_t record, const std::string& out) {
  const std::string& id = skill.skills()[record].id;
  for (const std::string& other : formats::skill_ids(base))
    if (other == id)
      return invalid(quote(base.path()) + " has a skill " + quote(id) + " already; detach it first");
  nlohmann::json header = plain_header(base), entry = skill.header()["skills"][record];
  entry.erase("base_dir_hash");
  header["skills"].push_back(std::move(entry));
  formats::CmfWriter writer(std::move(header));
  for (const Tensor& tensor : base.tensors())
    copy_tensor(writer, tensor, tensor.name);
  for (const Tensor& tensor : skill.tensors()) {
    const Tensor* replaced = base.find(tensor.name);
    if (replaced && replaced->shape != tensor.shape)
      return unsupported("tensor " + quote(tensor.name) + " of the skill has shape " +
                         formats::shape_text(tensor.shape) + ", the base's has " +
                         formats::shape_text(replaced->shape) +
                         ": a skill of another shape cannot be chosen while the model runs; attach it without --embed");
    if (replaced)
      copy_tensor(writer, tensor, formats::skill_tensor_name(id, tensor.name));
  }
  if (!masks_section(skill).empty())
    std::fprintf(stderr, "cortiq-skill: note: the skill's masks are left out; the base keeps its own\n");
  writer.set_masks(masks_section(base));
  writer.set_vocab(base.vocab());
  return writer.write(out);
}

} // namespace

Status attach(const std::string& base_path, const std::string& skill_path, bool embed, const std::string& out) {
  CORTIQ_RETURN_IF_ERROR(formats::check_not_input(base_path, out));
  CORTIQ_RETURN_IF_ERROR(formats::check_not_input(skill_path, out));
  CORTIQ_ASSIGN_OR_RETURN(const CmfFile base, CmfFile::open(base_path));
  CORTIQ_ASSIGN_OR_RETURN(const CmfFile skill, CmfFile::open(skill_path));
  CORTIQ_RETURN_IF_ERROR(check_base(base));
  CORTIQ_ASSIGN_OR_RETURN(const size_t record, binding_record(skill));
  const std::string &wanted = skill.skills()[record].base_dir_hash, found = base_key(base);
  if (wanted != found)
    return invalid(quote(skill_path) + " was cut from another base: it names " + quote(wanted) + ", " +
                   quote(base_path) + " is " + found);
  CORTIQ_RETURN_IF_ERROR(check_identity(base, skill));
  note_unused(base, skill);
  return embed ? write_embedded(base, skill, record, out) : write_specialist(base, skill, record, out);
}

} // namespace cortiq::skill
