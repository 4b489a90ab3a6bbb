#include "tools/cortiq-skill/rewrite.h"

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

StatusOr<size_t> record_of(const CmfFile& file, const std::string& id) {
  std::string known;
  for (size_t i = 0; i < file.skills().size(); ++i) {
    if (file.skills()[i].id == id)
      return i;
    known += (known.empty() ? "" : ", ") + file.skills()[i].id;
  }
  return invalid(quote(file.path()) + " has no skill " + quote(id) + "; it has: " + (known.empty() ? "none" : known));
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
