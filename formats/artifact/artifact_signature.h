#pragma once

// Detached signatures of artifacts: a sidecar "<file>.sig" with an ed25519 signature over the artifact's root. The file
// itself stays what the compiler made of the model, so that signed and unsigned ones can be compared byte by byte.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/artifact/artifact_hash.h"
#include "formats/signing/signer_key.h"
#include "formats/status.h"

namespace cortiq::formats {

/// What a sidecar says. The root is the hash of the header page: it covers the hash of code, manifest, programs,
/// tokenizer and provenance, and through the manifest the root of the hashes of the weights.
struct ArtifactSignature {
  SignerKey key{};
  Hash256 root{};
  std::array<uint8_t, 64> signature{};
};

/// The name of the sidecar of the artifact `path`.
std::string artifact_signature_path(const std::string& path);

/// Signs an artifact's root with the key pair that follows from `seed`.
StatusOr<ArtifactSignature> sign_artifact(const Hash256& root, const SignerKey& seed);

/// The text of a sidecar.
std::string artifact_signature_json(const ArtifactSignature& signature);
/// Parses one; `what` names it in messages. Anything but the four fields in their form is refused.
StatusOr<ArtifactSignature> parse_artifact_signature(std::string_view json, const std::string& what);

/// Reads the sidecar of `path`; empty when there is none, which is no failure.
StatusOr<std::optional<ArtifactSignature>> read_artifact_signature(const std::string& path);
/// Writes it, whole or not at all.
Status write_artifact_signature(const std::string& path, const ArtifactSignature& signature);

/// Holds the root of the bytes that were mapped against `signature` and, where given, the key that has to be the
/// signer's. The failure says which of the three does not fit.
Status verify_artifact_signature(const ArtifactSignature& signature, const Hash256& root,
                                 const std::optional<SignerKey>& required_key);

} // namespace cortiq::formats
