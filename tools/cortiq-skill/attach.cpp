#include <algorithm>
#include <cstdio>

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
      return invalid(quote(skill.path()) + " differs from its base in arch." + key +
                     "; extract it again with this base as --base");
  return {};
}

/// The one record that binds `skill` to its base.
StatusOr<size_t> binding_record(const CmfFile& skill) {
  for (size_t i = 0; i < skill.skills().size(); ++i)
    if (!skill.skills()[i].base_dir_hash.empty())
      return i;
  return invalid(quote(skill.path()) +
                 " is no standalone skill file: no record of it names a base; cortiq-skill extract makes one");
}

void note_unused(const CmfFile& base, const CmfFile& skill) {
  for (const Tensor& tensor : skill.tensors())
    if (!base.find(tensor.name))
      std::fprintf(stderr, "cortiq-skill: note: the base has no tensor %s, so the skill's is left out\n",
                   quote(tensor.name).c_str());
}

/// A skill file whose record `record` names the base.
struct Binding {
  CmfFile file;
  size_t record;

  const std::string& id() const { return file.skills()[record].id; }
  /// A mask alone: no tensors, and the record only binds it.
  bool is_mask() const { return file.tensors().empty() && file.masks(); }
};

StatusOr<Binding> bind(const CmfFile& base, const std::string& path) {
  CORTIQ_ASSIGN_OR_RETURN(CmfFile skill, CmfFile::open(path));
  CORTIQ_ASSIGN_OR_RETURN(const size_t record, binding_record(skill));
  const std::string &wanted = skill.skills()[record].base_dir_hash, found = base_key(base);
  if (wanted != found)
    return invalid(quote(path) + " was cut from another base: it names " + quote(wanted) + ", " + quote(base.path()) +
                   " is " + found + "; give the base that it was cut from");
  CORTIQ_RETURN_IF_ERROR(check_identity(base, skill));
  note_unused(base, skill);
  return Binding{std::move(skill), record};
}

/// The specialist: the base's tensors in their order, the skill's where it has one of that name.
Status write_specialist(const CmfFile& base, const Binding& skill, const std::string& out) {
  nlohmann::json header = plain_header(skill.file);
  header["skills"][skill.record].erase("base_dir_hash");
  formats::CmfWriter writer(std::move(header));
  for (const Tensor& tensor : base.tensors()) {
    const Tensor* replacement = skill.file.find(tensor.name);
    copy_tensor(writer, replacement ? *replacement : tensor, tensor.name);
  }
  writer.set_masks(masks_section(skill.file));
  writer.set_vocab(base.vocab());
  return writer.write(out);
}

/// Adds the tensors of `skill` to those of its base.
Status embed_one(formats::CmfWriter& writer, const CmfFile& base, const Binding& skill) {
  for (const Tensor& tensor : skill.file.tensors()) {
    const Tensor* replaced = base.find(tensor.name);
    if (replaced && replaced->shape != tensor.shape)
      return unsupported("tensor " + quote(tensor.name) + " of " + quote(skill.file.path()) + " has shape " +
                         formats::shape_text(tensor.shape) + ", the base's has " +
                         formats::shape_text(replaced->shape) +
                         ": a skill of another shape cannot be chosen while the model runs; attach it without --embed");
    if (replaced)
      copy_tensor(writer, tensor, formats::skill_tensor_name(skill.id(), tensor.name));
  }
  return {};
}

/// Adds the masks that come with `skill`: all of a file of masks, else the one that the skill runs with.
Status add_masks(MaskSection& masks, const CmfFile& base, const Binding& skill, const std::string& own_task) {
  std::string left_out;
  for (const MaskPart& mask : read_masks(skill.file).masks) {
    if (skill.is_mask() || mask.name() == own_task)
      CORTIQ_RETURN_IF_ERROR(add_mask(masks, mask, skill.file, base));
    else
      left_out += (left_out.empty() ? "" : ", ") + quote(mask.name());
  }
  if (!left_out.empty())
    std::fprintf(stderr, "cortiq-skill: note: of %s, masks that the skill does not name are left out: %s\n",
                 quote(skill.file.path()).c_str(), left_out.c_str());
  return {};
}

/// The base with the skills' tensors and masks beside its own.
Status write_embedded(const CmfFile& base, const std::vector<Binding>& skills, const std::string& out) {
  std::vector<std::string> ids = formats::skill_ids(base);
  for (const Binding& skill : skills) {
    if (skill.is_mask())
      continue;
    if (std::find(ids.begin(), ids.end(), skill.id()) != ids.end())
      return invalid("there would be two skills " + quote(skill.id()) + " in " + quote(out) +
                     "; detach the one that is there, or extract the other under another --id");
    ids.push_back(skill.id());
  }
  nlohmann::json header = plain_header(base);
  MaskSection masks = read_masks(base);
  for (const Binding& skill : skills) {
    nlohmann::json entry = skill.file.header()["skills"][skill.record];
    CORTIQ_RETURN_IF_ERROR(add_masks(masks, base, skill, task_of(skill.file, skill.record)));
    entry.erase("base_dir_hash");
    if (!skill.is_mask())
      header["skills"].push_back(std::move(entry));
  }
  formats::CmfWriter writer(std::move(header));
  for (const Tensor& tensor : base.tensors())
    copy_tensor(writer, tensor, tensor.name);
  for (const Binding& skill : skills)
    CORTIQ_RETURN_IF_ERROR(embed_one(writer, base, skill));
  const std::vector<uint8_t> section = masks.bytes();
  writer.set_masks(section);
  writer.set_vocab(base.vocab());
  return writer.write(out);
}

} // namespace

Status attach(const std::string& base_path, const std::vector<std::string>& skill_paths, bool embed,
              const std::string& out) {
  CORTIQ_ASSIGN_OR_RETURN(const CmfFile base, CmfFile::open(base_path));
  CORTIQ_RETURN_IF_ERROR(check_no_part(base, out));
  CORTIQ_RETURN_IF_ERROR(check_base(base));
  std::vector<Binding> skills;
  for (const std::string& path : skill_paths) {
    CORTIQ_ASSIGN_OR_RETURN(Binding skill, bind(base, path));
    CORTIQ_RETURN_IF_ERROR(check_no_part(skill.file, out));
    skills.push_back(std::move(skill));
  }
  // Masks take nothing's place.
  const bool beside = embed || std::all_of(skills.begin(), skills.end(), [](const Binding& b) { return b.is_mask(); });
  if (skills.size() > 1 && !beside)
    return invalid("only one skill can take the place of the base's tensors; put several beside them with --embed");
  return beside ? write_embedded(base, skills, out) : write_specialist(base, skills.front(), out);
}

} // namespace cortiq::skill
