// --verify: every check that a container allows, hashes and signatures included.

#include <cstdio>
#include <optional>

#include "formats/cmf/signed_model.h"
#include "formats/quote.h"
#include "tools/cortiq-inspect/artifact_mode.h"
#include "tools/cortiq-inspect/model_file.h"
#include "tools/cortiq-inspect/modes.h"

namespace cortiq::inspect {
namespace {

using formats::quote;
using formats::SignerKey;

Status verify(const formats::CmfFile& file, const std::optional<SignerKey>& required, std::string& found) {
  CORTIQ_ASSIGN_OR_RETURN(const std::string signatures, formats::check_cmf_signatures(file, required));
  CORTIQ_RETURN_IF_ERROR(file.verify());
  found = "sound, all stored hashes match, " + signatures;
  return {};
}

Status verify(const formats::GgufFile& file, const std::optional<SignerKey>& required, std::string& found) {
  if (required)
    return unsupported(quote(file.path()) +
                       ": GGUF files carry no signature; compile it with --sign and require the key of the artifact");
  // Opening has already checked all that there is.
  found = "sound; GGUF files carry no hashes";
  return {};
}

Status run(const Arguments& arguments) {
  std::optional<SignerKey> required;
  if (arguments.has("require-key")) {
    CORTIQ_ASSIGN_OR_RETURN(required,
                            formats::read_public_key(std::string(arguments.get("require-key")), "--require-key"));
  }
  if (is_artifact(arguments.file))
    return verify_artifact(arguments.file, required);
  CORTIQ_ASSIGN_OR_RETURN(const ModelFile model, open_model_file(arguments.file));
  std::string found;
  CORTIQ_RETURN_IF_ERROR(std::visit([&](const auto& file) { return verify(file, required, found); }, model));
  std::printf("%s: %s (%zu tensors)\n", quote(arguments.file).c_str(), found.c_str(), tensors_of(model).size());
  return {};
}

constexpr Option kOptions[] = {
    {"--require-key", "KEY", "refuse what is not signed with this ed25519 key: 64 digits, or the file that holds them"},
};

} // namespace

const Mode kVerifyMode = {
    .flag = "--verify",
    .help = "check FILE whole, recomputing every stored hash, and its signature if it has one",
    .options = kOptions,
    .run = run,
};

} // namespace cortiq::inspect
