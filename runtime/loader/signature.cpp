#include "runtime/loader/signature.h"

#include <algorithm>
#include <thread>

#include "formats/quote.h"
#include "runtime/loader/load.h"

namespace cortiq::runtime {

using formats::ArtifactSignature;
using formats::quote;
using formats::SignerKey;

Status require_signature(const MappedArtifact& file, const std::string& path, const SignerKey& key) {
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<ArtifactSignature> signature, formats::read_artifact_signature(path));
  if (!signature)
    return invalid("it is not signed (there is no " + quote(formats::artifact_signature_path(path)) +
                   "), and a signer's key is required");
  return formats::verify_artifact_signature(*signature, file.root(), key);
}

StatusOr<std::string> describe_signature(const MappedArtifact& file, const std::string& path) {
  CORTIQ_ASSIGN_OR_RETURN(const std::optional<ArtifactSignature> signature, formats::read_artifact_signature(path));
  if (!signature)
    return std::string("not signed");
  CORTIQ_RETURN_IF_ERROR(formats::verify_artifact_signature(*signature, file.root(), std::nullopt));
  return "signed by " + formats::signer_key_hex(signature->key);
}

StatusOr<ArtifactSignature> sign_artifact_file(const std::string& path, const SignerKey& seed) {
  ArtifactLoadOptions options;
  options.check_features = false;
  options.resolve = false;
  options.verify_weights = true;
  options.threads = std::max(1u, std::thread::hardware_concurrency());
  CORTIQ_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedArtifact> artifact, load_artifact(path, options));
  CORTIQ_ASSIGN_OR_RETURN(const ArtifactSignature signature, formats::sign_artifact(artifact->file.root(), seed));
  CORTIQ_RETURN_IF_ERROR(formats::write_artifact_signature(path, signature));
  return signature;
}

} // namespace cortiq::runtime
