#pragma once

// What the modes show of a compiled artifact.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/signing/signer_key.h"
#include "formats/status.h"
#include "runtime/loader/load.h"

namespace cortiq::inspect {

bool is_artifact(const std::string& path);

/// Manifest, sections, targets, weights and kernels, as text or JSON. With `target` the kernels of that one only.
Status list_artifact(const std::string& path, std::string_view target, bool json);

/// The targets whose kernels are to be shown: that one, or all where `target` is empty. Fails for one that is not
/// there.
StatusOr<std::vector<runtime::ArtifactTarget>> shown_targets(const runtime::LoadedArtifact& artifact,
                                                             std::string_view target);

/// Every check that the loader makes, the hash of every leaf of the weights, and the signature, where there is one or
/// one is required.
Status verify_artifact(const std::string& path, const std::optional<formats::SignerKey>& required);

} // namespace cortiq::inspect
