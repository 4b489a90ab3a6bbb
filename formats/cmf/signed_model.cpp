#include "formats/cmf/signed_model.h"

#include <utility>

#include "formats/quote.h"

namespace cortiq::formats {

StatusOr<std::string> check_cmf_signatures(const CmfFile& file, const std::optional<SignerKey>& required) {
  size_t files_signed = 0;
  std::string signer;
  for (size_t i = 0; i < file.file_count(); ++i) {
    const std::string& path = file.file_path(i);
    CORTIQ_ASSIGN_OR_RETURN(const auto signature, read_cmf_signature(path));
    if (!signature) {
      if (required)
        return invalid(quote(path) + ": it is not signed (there is no " + quote(cmf_signature_path(path)) +
                       "), --require-key asks for it");
      continue;
    }
    if (const Status fits = verify_cmf_signature(*signature, file.file_bytes(i), required); !fits.ok())
      return fits.with_prefix(quote(path));
    const std::string key = signer_key_hex(signature->key);
    if (!signer.empty() && signer != key) {
      std::string sentence = quote(path);
      sentence.append(": it is signed by ").append(key).append(", the shard before it by ").append(signer);
      return invalid(std::move(sentence));
    }
    signer = key;
    ++files_signed;
  }
  if (files_signed == 0)
    return std::string("not signed");
  if (files_signed == file.file_count())
    return "signed by " + signer;
  return std::to_string(files_signed) + " of " + std::to_string(file.file_count()) + " shards signed by " + signer;
}

} // namespace cortiq::formats
