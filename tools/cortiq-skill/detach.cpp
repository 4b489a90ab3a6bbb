#include <cstdio>

#include "formats/quote.h"
#include "tools/cortiq-skill/commands.h"
#include "tools/cortiq-skill/mask_section.h"
#include "tools/cortiq-skill/rewrite.h"

namespace cortiq::skill {
namespace {

using formats::CmfFile;
using formats::quote;

StatusOr<CmfFile> open_model(const std::string& path, const std::string& out) {
  CORTIQ_ASSIGN_OR_RETURN(CmfFile file, CmfFile::open(path));
  CORTIQ_RETURN_IF_ERROR(check_no_part(file, out));
  CORTIQ_RETURN_IF_ERROR(check_base(file));
  return file;
}

} // namespace

Status detach(const std::string& path, const std::string& id, const std::string& out) {
  CORTIQ_ASSIGN_OR_RETURN(const CmfFile file, open_model(path, out));
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<size_t> record, record_of(file, id));
  nlohmann::json header = plain_header(file);
  if (record) {
    header["skills"].erase(*record);
    if (header["skills"].empty())
      header.erase("skills");
    if (const std::string task = task_of(file, *record); read_masks(file).find(task))
      std::fprintf(stderr, "cortiq-skill: note: mask %s stays; detach --task takes it out\n", quote(task).c_str());
  }
  formats::CmfWriter writer(std::move(header));
  const std::map<size_t, std::string> own = replacements_of(file, id);
  for (size_t i = 0; i < file.tensors().size(); ++i)
    if (!own.contains(i))
      copy_tensor(writer, file.tensors()[i], file.tensors()[i].name);
  writer.set_masks(masks_section(file));
  writer.set_vocab(file.vocab());
  return writer.write(out);
}

Status detach_mask(const std::string& path, const std::string& task, const std::string& out) {
  CORTIQ_ASSIGN_OR_RETURN(const CmfFile file, open_model(path, out));
  MaskSection masks = read_masks(file);
  CORTIQ_ASSIGN_OR_RETURN(const size_t index, mask_of(file, masks, task));
  for (size_t i = 0; i < file.skills().size(); ++i)
    if (task_of(file, i) == task)
      return invalid("skill " + quote(file.skills()[i].id) + " runs with mask " + quote(task) +
                     "; detach the skill first");
  masks.masks.erase(masks.masks.begin() + static_cast<std::ptrdiff_t>(index));
  if (masks.default_task == task)
    masks.default_task = masks.masks.empty() ? "" : masks.masks[0].name();
  formats::CmfWriter writer(plain_header(file));
  for (const formats::Tensor& tensor : file.tensors())
    copy_tensor(writer, tensor, tensor.name);
  const std::vector<uint8_t> section = masks.bytes();
  writer.set_masks(section);
  writer.set_vocab(file.vocab());
  return writer.write(out);
}

} // namespace cortiq::skill
