#include "tools/cortiq-compile/signatures.h"

#include <optional>

#include "formats/cmf/signed_model.h"
#include "formats/quote.h"

namespace cortiq::tools {

Status check_signatures(const compiler::LoadedModel& model, const std::string& path, const std::string& key) {
  std::optional<formats::SignerKey> required;
  if (!key.empty()) {
    CORTIQ_ASSIGN_OR_RETURN(required, formats::read_public_key(key, "--require-key"));
  }
  if (model.cmf)
    return formats::check_cmf_signatures(*model.cmf, required).status();
  if (required)
    return unsupported(formats::quote(path) +
                       ": GGUF files carry no signature; compile it with --sign and require the key of the artifact");
  return {};
}

} // namespace cortiq::tools
