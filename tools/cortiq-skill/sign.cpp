#include <cstdio>

#include "formats/atomic_file.h"
#include "formats/cmf/cmf_file.h"
#include "formats/cmf/signature.h"
#include "formats/mapped_file.h"
#include "formats/quote.h"
#include "tools/cortiq-skill/commands.h"

namespace cortiq::skill {

using formats::CmfFile;
using formats::quote;
using formats::SignerKey;

namespace {

/// A seed file: 64 digits, with white space around them.
StatusOr<SignerKey> read_seed(const std::string& path) {
  CORTIQ_ASSIGN_OR_RETURN(const formats::MappedFile file, formats::MappedFile::open(path));
  std::string text(file.bytes().begin(), file.bytes().begin() + std::min<size_t>(file.bytes().size(), 256));
  text.erase(0, text.find_first_not_of(" \t\r\n"));
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  StatusOr<SignerKey> seed = formats::parse_signer_key(text, "");
  if (!seed.ok()) // without its content: it may be nearly a key
    return invalid(quote(path) + " is no key file: it has to hold 64 hexadecimal digits");
  return seed;
}

} // namespace

Status sign(const std::string& path, const std::string& key_file) {
  CORTIQ_ASSIGN_OR_RETURN(const SignerKey seed, read_seed(key_file));
  CORTIQ_ASSIGN_OR_RETURN(const CmfFile file, CmfFile::open(path));
  for (size_t i = 0; i < file.file_count(); ++i) {
    CORTIQ_ASSIGN_OR_RETURN(const formats::CmfSignature signature, formats::sign_cmf(file.file_bytes(i), seed));
    const std::string text = formats::cmf_signature_json(signature);
    const std::string out = formats::cmf_signature_path(file.file_path(i));
    CORTIQ_RETURN_IF_ERROR(formats::check_not_input(key_file, out));
    CORTIQ_RETURN_IF_ERROR(formats::write_file(out, {reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
    std::printf("%s: signed by %s\n", quote(out).c_str(), formats::signer_key_hex(signature.key).c_str());
  }
  return {};
}

Status verify(const std::string& path, const std::optional<std::string>& required_key) {
  std::optional<SignerKey> required;
  if (required_key) {
    CORTIQ_ASSIGN_OR_RETURN(required, formats::parse_signer_key(*required_key, "--key"));
  }
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
