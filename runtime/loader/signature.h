#pragma once

// Whose an artifact is.

#include <optional>
#include <string>

#include "formats/artifact/artifact_signature.h"
#include "runtime/loader/mapped_artifact.h"

namespace cortiq::runtime {

/// Fails where `file`, which was opened as `path`, is not signed with `key`. The root that is held against the
/// signature was computed over the bytes that are mapped; it covers the weights only together with a check of their
/// leaves.
Status require_signature(const MappedArtifact& file, const std::string& path, const formats::SignerKey& key);

/// A clause for people: "signed by 0d50…" or "not signed". A signature that does not fit the file is a failure.
StatusOr<std::string> describe_signature(const MappedArtifact& file, const std::string& path);

/// Signs the artifact `path`, whose every hash is checked first, beside it. Gives what was written.
StatusOr<formats::ArtifactSignature> sign_artifact_file(const std::string& path, const formats::SignerKey& seed);

} // namespace cortiq::runtime
