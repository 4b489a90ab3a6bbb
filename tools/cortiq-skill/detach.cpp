#include "formats/atomic_file.h"
#include "formats/cmf/cmf_overlay.h"
#include "tools/cortiq-skill/commands.h"
#include "tools/cortiq-skill/rewrite.h"

namespace cortiq::skill {

Status detach(const std::string& path, const std::string& id, const std::string& out) {
  CORTIQ_RETURN_IF_ERROR(formats::check_not_input(path, out));
  CORTIQ_ASSIGN_OR_RETURN(const formats::CmfFile file, formats::CmfFile::open(path));
  CORTIQ_RETURN_IF_ERROR(check_base(file));
  CORTIQ_ASSIGN_OR_RETURN(const size_t record, record_of(file, id));
  nlohmann::json header = plain_header(file);
  header["skills"].erase(record);
  if (header["skills"].empty())
    header.erase("skills");
  formats::CmfWriter writer(std::move(header));
  const std::string prefix = formats::skill_tensor_name(id, "");
  for (const formats::Tensor& tensor : file.tensors())
    if (!tensor.name.starts_with(prefix))
      copy_tensor(writer, tensor, tensor.name);
  writer.set_masks(masks_section(file));
  writer.set_vocab(file.vocab());
  return writer.write(out);
}

} // namespace cortiq::skill
