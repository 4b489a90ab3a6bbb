#pragma once

// Checkpoint folders (config.json, *.safetensors, tokenizer.json) as models to be converted.

#include "formats/safetensors/safetensors_file.h"
#include "tools/cortiq-convert/source_model.h"

namespace cortiq::convert {

/// The model in `folder`, whose weights are `weights`, in CMF's terms. Fails for a model type, field or tensor that CMF
/// has no place for or this program does not know, each by name.
StatusOr<SourceModel> read_hf_model(const std::string& folder, const formats::SafetensorsFolder& weights);

} // namespace cortiq::convert
