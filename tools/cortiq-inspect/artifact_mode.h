#pragma once

// What the modes show of a compiled artifact.

#include <string>

#include "formats/status.h"

namespace cortiq::inspect {

bool is_artifact(const std::string& path);

/// Manifest, sections, weights and kernels, as text or JSON.
Status list_artifact(const std::string& path, bool json);

/// Every check that the loader makes, and the hash of every leaf of the weights.
Status verify_artifact(const std::string& path);

} // namespace cortiq::inspect
