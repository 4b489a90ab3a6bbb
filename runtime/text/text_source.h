#pragma once

// The text side of a model file: tokenizer.json, GGUF or CMF.

#include <cstdint>
#include <string>
#include <vector>

#include "formats/cmf/cmf_file.h"
#include "formats/gguf/gguf_file.h"
#include "formats/status.h"
#include "runtime/text/text_config.h"

namespace cortiq::runtime::text {

struct TextSource {
  std::vector<uint8_t> tokenizer_json;
  TextConfig config;
  std::string file; ///< that tokenizer_json was read from as it is, where it is not part of the model's
  std::vector<std::string> warnings; ///< one sentence each, for --verbose
};

/// From an open file. Fails where it has no tokenizer, or one that is not supported (named).
StatusOr<TextSource> read_text_source(const formats::GgufFile& file);
/// Likewise; without a vocab section, tokenizer.json beside the file is taken, as the format says.
StatusOr<TextSource> read_text_source(const formats::CmfFile& file);

/// From the file `path`, whose kind is told by its first bytes; a file that begins with a brace is a tokenizer.json,
/// whose configuration then holds nothing but what its vocabulary shows.
StatusOr<TextSource> load_text_source(const std::string& path);

} // namespace cortiq::runtime::text
