#include "tools/cortiq-inspect/model_file.h"

#include "formats/file_kind.h"
#include "formats/quote.h"

namespace cortiq::inspect {

using formats::FileKind;

StatusOr<ModelFile> open_model_file(const std::string& path) {
  CORTIQ_ASSIGN_OR_RETURN(const FileKind kind, formats::detect_file_kind(path));
  if (kind == FileKind::kCmf) {
    CORTIQ_ASSIGN_OR_RETURN(formats::CmfFile file, formats::CmfFile::open(path));
    return ModelFile(std::move(file));
  }
  if (kind == FileKind::kGguf) {
    CORTIQ_ASSIGN_OR_RETURN(formats::GgufFile file, formats::GgufFile::open(path));
    return ModelFile(std::move(file));
  }
  return invalid(formats::quote(path) +
                 " is an ELF file, not a model; give the CMF or GGUF file that it was compiled from");
}

const std::vector<formats::Tensor>& tensors_of(const ModelFile& model) {
  return std::visit([](const auto& file) -> const std::vector<formats::Tensor>& { return file.tensors(); }, model);
}

const formats::Tensor* find_tensor(const ModelFile& model, std::string_view name) {
  return std::visit([name](const auto& file) { return file.find(name); }, model);
}

} // namespace cortiq::inspect
