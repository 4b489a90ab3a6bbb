#pragma once

#include "formats/artifact/artifact_generated.h"
#include "formats/overlay/catalog.h"

namespace cortiq::compiler {

/// Writes skills, masks and routing data into the manifest.
void addOverlayRows(const formats::OverlayCatalog& catalog, artifact::ManifestT& manifest);

} // namespace cortiq::compiler
