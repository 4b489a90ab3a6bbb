#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/cmf/cmf_file.h"
#include "formats/gguf/gguf_file.h"
#include "formats/status.h"
#include "formats/tensor.h"

namespace cortiq::inspect {

/// A model file of either container.
using ModelFile = std::variant<formats::CmfFile, formats::GgufFile>;

/// Opens `path` with the reader that its first bytes ask for; refuses artifacts.
StatusOr<ModelFile> open_model_file(const std::string& path);

const std::vector<formats::Tensor>& tensors_of(const ModelFile& model);
const formats::Tensor* find_tensor(const ModelFile& model, std::string_view name);

} // namespace cortiq::inspect
