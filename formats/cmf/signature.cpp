#include "formats/cmf/signature.h"

#include <sodium.h>
#include <unistd.h>

#include "formats/cmf/json_fields.h"
#include "formats/mapped_file.h"
#include "formats/quote.h"

namespace cortiq::formats {
namespace {

constexpr std::string_view kAlgorithm = "ed25519-sha256";
/// A sidecar is some 330 bytes; what is far beyond that is something else.
constexpr size_t kLargestSidecar = 65536;

} // namespace

std::string cmf_signature_path(const std::string& path) {
  return path + ".sig";
}

StatusOr<CmfSignature> parse_cmf_signature(std::string_view json, const std::string& what) {
  CORTIQ_ASSIGN_OR_RETURN(const Json object, parse_json(json, what));
  std::string algorithm, key, digest, signature;
  JsonFields fields(object, what);
  fields.required("alg", algorithm);
  if (fields.status().ok() && algorithm != kAlgorithm)
    return unsupported(what + " has the algorithm " + quote(algorithm) + "; only " + std::string(kAlgorithm) +
                       " is known");
  fields.required("pubkey", key);
  fields.required("sha256", digest);
  fields.required("sig", signature);
  CORTIQ_RETURN_IF_ERROR(fields.status());
  CmfSignature out;
  CORTIQ_RETURN_IF_ERROR(parse_hex_digits(key, what + ": pubkey", out.key));
  CORTIQ_RETURN_IF_ERROR(parse_hex_digits(digest, what + ": sha256", out.sha256));
  CORTIQ_RETURN_IF_ERROR(parse_hex_digits(signature, what + ": sig", out.signature));
  return out;
}

StatusOr<std::optional<CmfSignature>> read_cmf_signature(const std::string& path) {
  const std::string sidecar = cmf_signature_path(path);
  // A link to nothing is a sidecar that was lost, not one that never was: faccessat would call both absent.
  char target;
  if (access(sidecar.c_str(), F_OK) != 0 && readlink(sidecar.c_str(), &target, 1) < 0)
    return std::optional<CmfSignature>();
  CORTIQ_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(sidecar));
  if (file.bytes().size() > kLargestSidecar)
    return invalid(quote(sidecar) + " has " + std::to_string(file.bytes().size()) + " bytes, too many for a signature");
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  CORTIQ_ASSIGN_OR_RETURN(CmfSignature signature, parse_cmf_signature(text, quote(sidecar)));
  return std::optional<CmfSignature>(signature);
}

StatusOr<CmfSignature> sign_cmf(std::span<const uint8_t> bytes, const SignerKey& seed) {
  if (sodium_init() < 0)
    return internal_error("the cryptographic library cannot start");
  CmfSignature out;
  std::array<uint8_t, crypto_sign_SECRETKEYBYTES> secret;
  crypto_sign_seed_keypair(out.key.data(), secret.data(), seed.data());
  crypto_hash_sha256(out.sha256.data(), bytes.data(), bytes.size());
  crypto_sign_detached(out.signature.data(), nullptr, out.sha256.data(), out.sha256.size(), secret.data());
  sodium_memzero(secret.data(), secret.size());
  return out;
}

std::string cmf_signature_json(const CmfSignature& signature) {
  const Json object = {{"alg", kAlgorithm},
                       {"pubkey", hex_digits(signature.key)},
                       {"sha256", hex_digits(signature.sha256)},
                       {"sig", hex_digits(signature.signature)}};
  return object.dump(2) + "\n";
}

Status verify_cmf_signature(const CmfSignature& signature, std::span<const uint8_t> bytes,
                            const std::optional<SignerKey>& required_key) {
  if (sodium_init() < 0)
    return internal_error("the cryptographic library cannot start");
  if (required_key && *required_key != signature.key)
    return other_signer(signature.key, *required_key);
  std::array<uint8_t, crypto_hash_sha256_BYTES> digest;
  crypto_hash_sha256(digest.data(), bytes.data(), bytes.size());
  if (digest != signature.sha256)
    return invalid("its SHA-256 is not the one that was signed: the file was changed after signing");
  if (crypto_sign_verify_detached(signature.signature.data(), digest.data(), digest.size(), signature.key.data()) != 0)
    return invalid("its signature was not made with the key " + signer_key_hex(signature.key));
  return {};
}

} // namespace cortiq::formats
