#pragma once

// GGUF files as models to be converted.

#include "formats/gguf/gguf_file.h"
#include "tools/cortiq-convert/source_model.h"

namespace cortiq::convert {

/// `file` in CMF's terms. Fails for an architecture, key or tensor that CMF has no place for or this program does not
/// know, each by name.
StatusOr<SourceModel> read_gguf_model(const formats::GgufFile& file);

} // namespace cortiq::convert
