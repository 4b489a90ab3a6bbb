#include "formats/artifact/artifact_signature.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sodium.h>
#include <span>
#include <unistd.h>
#include <vector>

#include "formats/atomic_file.h"
#include "formats/json.h"
#include "formats/mapped_file.h"
#include "formats/quote.h"

namespace cortiq::formats {
namespace {

constexpr std::string_view kAlgorithm = "ed25519-cqa";
/// In front of the root in what is signed: no signature of anything else can be taken for one of an artifact.
constexpr std::string_view kDomain = "cortiq artifact 1\n";
/// A sidecar is some 340 bytes; what is far beyond that is something else.
constexpr size_t kLargestSidecar = 65536;

std::vector<uint8_t> signed_message(const Hash256& root) {
  std::vector<uint8_t> out(kDomain.size() + root.size());
  std::copy(root.begin(), root.end(), std::copy(kDomain.begin(), kDomain.end(), out.begin()));
  return out;
}

Status read_field(const Json& object, const std::string& what, const char* name, std::span<uint8_t> out) {
  const auto field = object.find(name);
  if (field == object.end() || !field->is_string())
    return invalid(what + " has no text " + quote(name));
  return parse_hex_digits(field->get_ref<const std::string&>(), what + ": " + name, out);
}

} // namespace

std::string artifact_signature_path(const std::string& path) {
  return path + ".sig";
}

StatusOr<ArtifactSignature> sign_artifact(const Hash256& root, const SignerKey& seed) {
  if (sodium_init() < 0)
    return internal_error("the cryptographic library cannot start");
  ArtifactSignature out;
  out.root = root;
  std::array<uint8_t, crypto_sign_SECRETKEYBYTES> secret;
  crypto_sign_seed_keypair(out.key.data(), secret.data(), seed.data());
  const std::vector<uint8_t> message = signed_message(root);
  crypto_sign_detached(out.signature.data(), nullptr, message.data(), message.size(), secret.data());
  sodium_memzero(secret.data(), secret.size());
  return out;
}

std::string artifact_signature_json(const ArtifactSignature& signature) {
  const Json object = {{"alg", kAlgorithm},
                       {"pubkey", hex_digits(signature.key)},
                       {"root", hex_digits(signature.root)},
                       {"sig", hex_digits(signature.signature)}};
  return object.dump(2) + "\n";
}

StatusOr<ArtifactSignature> parse_artifact_signature(std::string_view json, const std::string& what) {
  CORTIQ_ASSIGN_OR_RETURN(const Json object, parse_json(json, what));
  const auto algorithm = object.is_object() ? object.find("alg") : object.end();
  if (algorithm == object.end() || !algorithm->is_string())
    return invalid(what + " is no signature of an artifact");
  if (algorithm->get_ref<const std::string&>() != kAlgorithm)
    return unsupported(what + " has the algorithm " + quote(algorithm->get_ref<const std::string&>()) +
                       "; artifacts have " + std::string(kAlgorithm));
  ArtifactSignature out;
  CORTIQ_RETURN_IF_ERROR(read_field(object, what, "pubkey", out.key));
  CORTIQ_RETURN_IF_ERROR(read_field(object, what, "root", out.root));
  CORTIQ_RETURN_IF_ERROR(read_field(object, what, "sig", out.signature));
  return out;
}

StatusOr<std::optional<ArtifactSignature>> read_artifact_signature(const std::string& path) {
  const std::string sidecar = artifact_signature_path(path);
  // A link to nothing is a sidecar that was lost, not one that never was.
  char target;
  if (access(sidecar.c_str(), F_OK) != 0 && readlink(sidecar.c_str(), &target, 1) < 0)
    return std::optional<ArtifactSignature>();
  CORTIQ_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(sidecar));
  if (file.bytes().size() > kLargestSidecar)
    return invalid(quote(sidecar) + " has " + std::to_string(file.bytes().size()) + " bytes, too many for a signature");
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  CORTIQ_ASSIGN_OR_RETURN(const ArtifactSignature signature, parse_artifact_signature(text, quote(sidecar)));
  return std::optional<ArtifactSignature>(signature);
}

Status write_artifact_signature(const std::string& path, const ArtifactSignature& signature) {
  const std::string text = artifact_signature_json(signature);
  return write_file(artifact_signature_path(path), {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

Status verify_artifact_signature(const ArtifactSignature& signature, const Hash256& root,
                                 const std::optional<SignerKey>& required_key) {
  if (sodium_init() < 0)
    return internal_error("the cryptographic library cannot start");
  if (required_key && *required_key != signature.key)
    return other_signer(signature.key, *required_key);
  if (root != signature.root)
    return invalid("its signature is of another file: it was changed or compiled again after signing");
  const std::vector<uint8_t> message = signed_message(root);
  if (crypto_sign_verify_detached(signature.signature.data(), message.data(), message.size(), signature.key.data()) !=
      0)
    return invalid("its signature was not made with the key " + signer_key_hex(signature.key));
  return {};
}

} // namespace cortiq::formats
