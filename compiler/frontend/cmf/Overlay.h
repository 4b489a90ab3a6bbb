#pragma once

// What a CMF file holds beside its backbone: skills, task masks and task tubes.

#include "compiler/frontend/ModelDescription.h"
#include "formats/cmf/cmf_file.h"

namespace cortiq::compiler {

/// Adds the overlay catalog, the task tubes and, for every weight that `model` has by now, what skills put in its
/// place. Fails for replacements of another shape.
Status describeCmfOverlay(const formats::CmfFile& file, ModelDescription& model);

} // namespace cortiq::compiler
