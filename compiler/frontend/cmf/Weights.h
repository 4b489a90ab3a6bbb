#pragma once

// Tensors of a CMF file as weights of a model.

#include "compiler/frontend/ModelDescription.h"
#include "formats/cmf/cmf_file.h"

namespace cortiq::compiler {

/// A tensor that the model cannot do without.
StatusOr<const formats::Tensor*> requireCmfTensor(const formats::CmfFile& file, const std::string& name);

/// Adds the tensor `name`, which has to be there and of this shape, as the weight of that name.
Status addCmfWeight(const formats::CmfFile& file, ModelDescription& model, const std::string& name,
                    std::vector<int64_t> shape);

/// The same of a tensor that may be missing.
Status addOptionalCmfWeight(const formats::CmfFile& file, ModelDescription& model, const std::string& name,
                            std::vector<int64_t> shape);

} // namespace cortiq::compiler
