#include <algorithm>
#include <cstdio>
#include <thread>

#include "formats/atomic_file.h"
#include "formats/cmf/cmf_file.h"
#include "formats/cmf/signature.h"
#include "formats/file_kind.h"
#include "formats/quote.h"
#include "formats/signing/signer_key.h"
#include "runtime/loader/load.h"
#include "runtime/loader/signature.h"
#include "tools/cortiq-skill/commands.h"

namespace cortiq::skill {

using formats::CmfFile;
using formats::quote;
using formats::SignerKey;

namespace {

bool is_artifact(const std::string& path) {
  const auto kind = formats::detect_file_kind(path);
  return kind.ok() && *kind == formats::FileKind::kArtifact;
}

void say_signed(const std::string& sidecar, const SignerKey& key) {
  std::printf("%s: signed by %s\n", quote(sidecar).c_str(), formats::signer_key_hex(key).c_str());
}

Status verify_artifact(const std::string& path, const std::optional<SignerKey>& required) {
  runtime::ArtifactLoadOptions options;
  options.check_features = false;
  options.resolve = false;
  options.verify_weights = true;
  options.require_key = required;
  options.threads = std::max(1u, std::thread::hardware_concurrency());
  CORTIQ_ASSIGN_OR_RETURN(const auto artifact, runtime::load_artifact(path, options));
  StatusOr<std::string> signer = runtime::describe_signature(artifact->file, path);
  if (!signer.ok())
    return signer.status().with_prefix(quote(path));
  std::printf("%s: every hash is right, %s\n", quote(path).c_str(), signer->c_str());
  return {};
}

} // namespace

Status make_key(const std::string& path) {
  CORTIQ_ASSIGN_OR_RETURN(const SignerKey key, formats::make_key_file(path));
  std::printf("%s: the key, to be kept secret\n%s: its public key, which --require-key takes: %s\n",
              quote(path).c_str(), quote(path + ".pub").c_str(), formats::signer_key_hex(key).c_str());
  return {};
}

Status sign(const std::string& path, const std::string& key_file) {
  CORTIQ_ASSIGN_OR_RETURN(const SignerKey seed, formats::read_key_file(key_file));
  if (is_artifact(path)) {
    CORTIQ_RETURN_IF_ERROR(formats::check_not_input(key_file, formats::artifact_signature_path(path)));
    CORTIQ_ASSIGN_OR_RETURN(const formats::ArtifactSignature signature, runtime::sign_artifact_file(path, seed));
    say_signed(formats::artifact_signature_path(path), signature.key);
    return {};
  }
  CORTIQ_ASSIGN_OR_RETURN(const CmfFile file, CmfFile::open(path));
  for (size_t i = 0; i < file.file_count(); ++i) {
    CORTIQ_ASSIGN_OR_RETURN(const formats::CmfSignature signature, formats::sign_cmf(file.file_bytes(i), seed));
    const std::string text = formats::cmf_signature_json(signature);
    const std::string out = formats::cmf_signature_path(file.file_path(i));
    CORTIQ_RETURN_IF_ERROR(formats::check_not_input(key_file, out));
    CORTIQ_RETURN_IF_ERROR(formats::write_file(out, {reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
    say_signed(out, signature.key);
  }
  return {};
}

Status verify(const std::string& path, const std::optional<std::string>& required_key) {
  std::optional<SignerKey> required;
  if (required_key) {
    CORTIQ_ASSIGN_OR_RETURN(required, formats::read_public_key(*required_key, "--key"));
  }
  if (is_artifact(path))
    return verify_artifact(path, required);
  CORTIQ_ASSIGN_OR_RETURN(const CmfFile file, CmfFile::open(path));
  CORTIQ_RETURN_IF_ERROR(file.verify());
  for (size_t i = 0; i < file.file_count(); ++i) {
    const std::string where = quote(file.file_path(i));
    CORTIQ_ASSIGN_OR_RETURN(const auto signature, formats::read_cmf_signature(file.file_path(i)));
    if (!signature && required)
      return invalid(where + " is not signed, and --key asks for a signature");
    if (signature)
      CORTIQ_RETURN_IF_ERROR(
          formats::verify_cmf_signature(*signature, file.file_bytes(i), required).with_prefix(where));
    std::printf("%s: every hash is right, %s\n", where.c_str(),
                signature ? ("signed by " + formats::signer_key_hex(signature->key)).c_str() : "not signed");
  }
  return {};
}

} // namespace cortiq::skill
