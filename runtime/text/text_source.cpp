#include "runtime/text/text_source.h"

#include <algorithm>

#include "formats/file_kind.h"
#include "formats/mapped_file.h"
#include "formats/quote.h"
#include "runtime/text/cmf_text.h"
#include "runtime/text/gguf_text.h"
#include "runtime/text/gguf_tokenizer.h"

namespace cortiq::runtime::text {
namespace {

StatusOr<TextSource> from_json(std::span<const uint8_t> json,
                               const std::optional<formats::CmfTokenizerConfig>& bundle) {
  CORTIQ_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::from_bytes(json));
  TextSource source;
  source.config = cmf_text_config(tokenizer, bundle);
  source.tokenizer_json.assign(json.begin(), json.end());
  return source;
}

/// Whether the first byte that is not white space opens a JSON object.
bool is_json(std::span<const uint8_t> bytes) {
  auto first = std::find_if(bytes.begin(), bytes.end(),
                            [](uint8_t byte) { return byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t'; });
  return first != bytes.end() && *first == '{';
}

} // namespace

StatusOr<TextSource> read_text_source(const formats::GgufFile& file) {
  const std::string name = formats::quote(file.path());
  StatusOr<GgufTokenizerData> data = read_gguf_tokenizer_data(file);
  CORTIQ_RETURN_IF_ERROR(data.status());
  StatusOr<ConvertedTokenizer> converted = convert_gguf_tokenizer(*data);
  CORTIQ_RETURN_IF_ERROR(converted.status().with_prefix(name));
  TextSource source;
  source.tokenizer_json.assign(converted->tokenizer_json.begin(), converted->tokenizer_json.end());
  source.config = std::move(converted->config);
  source.warnings = std::move(converted->warnings);
  for (std::string& warning : source.warnings)
    warning = name + ": " + warning;
  return source;
}

StatusOr<TextSource> read_text_source(const formats::CmfFile& file) {
  const std::string name = formats::quote(file.path());
  if (!file.vocab().empty()) {
    StatusOr<TextSource> source = from_json(file.vocab(), file.tokenizer_config());
    CORTIQ_RETURN_IF_ERROR(source.status().with_prefix(name));
    return source;
  }
  const size_t slash = file.path().rfind('/');
  const std::string beside = (slash == std::string::npos ? "" : file.path().substr(0, slash + 1)) + "tokenizer.json";
  StatusOr<formats::MappedFile> json = formats::MappedFile::open(beside);
  if (!json.ok())
    return unsupported(name + " has no vocab section, and there is no tokenizer.json beside it; give token ids");
  StatusOr<TextSource> source = from_json(json->bytes(), file.tokenizer_config());
  CORTIQ_RETURN_IF_ERROR(source.status().with_prefix(formats::quote(beside)));
  source->file = beside;
  return source;
}

StatusOr<TextSource> load_text_source(const std::string& path) {
  {
    CORTIQ_ASSIGN_OR_RETURN(const formats::MappedFile file, formats::MappedFile::open(path));
    if (is_json(file.bytes())) {
      StatusOr<TextSource> source = from_json(file.bytes(), std::nullopt);
      CORTIQ_RETURN_IF_ERROR(source.status().with_prefix(formats::quote(path)));
      return source;
    }
  }
  CORTIQ_ASSIGN_OR_RETURN(const formats::FileKind kind, formats::detect_file_kind(path));
  switch (kind) {
  case formats::FileKind::kGguf: {
    CORTIQ_ASSIGN_OR_RETURN(const formats::GgufFile file, formats::GgufFile::open(path));
    return read_text_source(file);
  }
  case formats::FileKind::kCmf: {
    CORTIQ_ASSIGN_OR_RETURN(const formats::CmfFile file, formats::CmfFile::open(path));
    return read_text_source(file);
  }
  case formats::FileKind::kArtifact:
    break;
  }
  return unsupported(formats::quote(path) + " is a compiled artifact; give the model file or a tokenizer.json");
}

} // namespace cortiq::runtime::text
