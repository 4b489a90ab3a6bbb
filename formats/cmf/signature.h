#pragma once

// Detached signatures of CMF files (specification 1.8): a sidecar "<file>.sig" with an ed25519 signature over the
// SHA-256 of the whole file.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/signing/signer_key.h"
#include "formats/status.h"

namespace cortiq::formats {

/// What a sidecar says.
struct CmfSignature {
  SignerKey key{};
  std::array<uint8_t, 32> sha256{};
  std::array<uint8_t, 64> signature{};
};

/// The name of the sidecar of the file `path`.
std::string cmf_signature_path(const std::string& path);

/// Parses a sidecar; `what` names it in messages. An `alg` other than "ed25519-sha256" and digits that are too many,
/// too few or none are refused.
StatusOr<CmfSignature> parse_cmf_signature(std::string_view json, const std::string& what);

/// Reads the sidecar of `path`; empty when there is none, which is no failure.
StatusOr<std::optional<CmfSignature>> read_cmf_signature(const std::string& path);

/// Signs `bytes`, the whole content of a file, with the key pair that follows from `seed`.
StatusOr<CmfSignature> sign_cmf(std::span<const uint8_t> bytes, const SignerKey& seed);

/// The text of a sidecar.
std::string cmf_signature_json(const CmfSignature& signature);

/// Holds `bytes`, the whole content of a file that was mapped, against `signature` and, where given, the key that has
/// to be the signer's. The failure says which of the three does not fit.
Status verify_cmf_signature(const CmfSignature& signature, std::span<const uint8_t> bytes,
                            const std::optional<SignerKey>& required_key);

} // namespace cortiq::formats
