#include "compiler/frontend/cmf/Weights.h"

#include "formats/quote.h"

namespace cortiq::compiler {

using formats::CmfFile;
using formats::Tensor;

StatusOr<const Tensor*> requireCmfTensor(const CmfFile& file, const std::string& name) {
  if (const Tensor* tensor = file.find(name))
    return tensor;
  return invalid("tensor " + formats::quote(name) + " is missing");
}

Status addCmfWeight(const CmfFile& file, ModelDescription& model, const std::string& name, std::vector<int64_t> shape) {
  CORTIQ_ASSIGN_OR_RETURN(const Tensor* tensor, requireCmfTensor(file, name));
  return addWeight(model, name, {tensor, std::move(shape)});
}

Status addOptionalCmfWeight(const CmfFile& file, ModelDescription& model, const std::string& name,
                            std::vector<int64_t> shape) {
  return file.find(name) ? addCmfWeight(file, model, name, std::move(shape)) : Status();
}

} // namespace cortiq::compiler
