// --verify: every check that a container allows, hashes and signatures included.

#include <cstdio>
#include <optional>
#include <utility>

#include "formats/cmf/signature.h"
#include "formats/quote.h"
#include "tools/cortiq-inspect/artifact_mode.h"
#include "tools/cortiq-inspect/model_file.h"
#include "tools/cortiq-inspect/modes.h"

namespace cortiq::inspect {
namespace {

using formats::quote;
using formats::SignerKey;

/// Each file of a model has its own sidecar. `found` becomes a clause for the sentence on the whole.
Status check_signatures(const formats::CmfFile& file, const std::optional<SignerKey>& required, std::string& found) {
  size_t files_signed = 0;
  std::string signer;
  for (size_t i = 0; i < file.file_count(); ++i) {
    const std::string& path = file.file_path(i);
    CORTIQ_ASSIGN_OR_RETURN(const auto signature, formats::read_cmf_signature(path));
    if (!signature) {
      if (required)
        return invalid(quote(path) + ": it is not signed (there is no " + quote(formats::cmf_signature_path(path)) +
                       "), --require-key asks for it");
      continue;
    }
    CORTIQ_RETURN_IF_ERROR(
        formats::verify_cmf_signature(*signature, file.file_bytes(i), required).with_prefix(quote(path)));
    const std::string key = formats::signer_key_hex(signature->key);
    if (!signer.empty() && signer != key) {
      std::string sentence = quote(path);
      sentence.append(": it is signed by ").append(key).append(", the shard before it by ").append(signer);
      return invalid(std::move(sentence));
    }
    signer = key;
    ++files_signed;
  }
  if (files_signed == 0)
    found = "not signed";
  else if (files_signed == file.file_count())
    found = "signed by " + signer;
  else
    found = std::to_string(files_signed) + " of " + std::to_string(file.file_count()) + " shards signed by " + signer;
  return {};
}

Status verify(const formats::CmfFile& file, const std::optional<SignerKey>& required, std::string& found) {
  std::string signatures;
  CORTIQ_RETURN_IF_ERROR(check_signatures(file, required, signatures));
  CORTIQ_RETURN_IF_ERROR(file.verify());
  found = "sound, all stored hashes match, " + signatures;
  return {};
}

Status verify(const formats::GgufFile& file, const std::optional<SignerKey>& required, std::string& found) {
  if (required)
    return unsupported(quote(file.path()) + ": GGUF files carry no signature, --require-key cannot be met");
  // Opening has already checked all that there is.
  found = "sound; GGUF files carry no hashes";
  return {};
}

Status run(const Arguments& arguments) {
  std::optional<SignerKey> required;
  if (arguments.has("require-key")) {
    CORTIQ_ASSIGN_OR_RETURN(required, formats::parse_signer_key(arguments.get("require-key"), "--require-key"));
  }
  if (is_artifact(arguments.file)) {
    if (required)
      return unsupported(quote(arguments.file) + ": signatures of artifacts are not checked by this version");
    return verify_artifact(arguments.file);
  }
  CORTIQ_ASSIGN_OR_RETURN(const ModelFile model, open_model_file(arguments.file));
  std::string found;
  CORTIQ_RETURN_IF_ERROR(std::visit([&](const auto& file) { return verify(file, required, found); }, model));
  std::printf("%s: %s (%zu tensors)\n", quote(arguments.file).c_str(), found.c_str(), tensors_of(model).size());
  return {};
}

constexpr Option kOptions[] = {
    {"--require-key", "HEX", "refuse what is not signed with this ed25519 key (64 digits)"},
};

} // namespace

const Mode kVerifyMode = {
    .flag = "--verify",
    .help = "check FILE whole, recomputing every stored hash, and its signature if it has one",
    .options = kOptions,
    .run = run,
};

} // namespace cortiq::inspect
