#pragma once

#include "compiler/frontend/ModelDescription.h"
#include "formats/gguf/gguf_file.h"

namespace cortiq::compiler {

/// The model of a GGUF file, by the architecture it names (arch/). Refuses unknown architectures with a list of those
/// known, and everything that the keys and tensors of the file do not agree on. The description points into `file`.
StatusOr<ModelDescription> describeGguf(const formats::GgufFile& file, uint64_t maxContext = 0);

} // namespace cortiq::compiler
